"""RUNS AS WHOEVER TYPED IT: one file a command. Reads; what changes the machine is root's."""
