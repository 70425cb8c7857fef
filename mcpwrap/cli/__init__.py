"""RUNS AS WHOEVER TYPED IT: one file a command. Files are changed by root's program alone."""
