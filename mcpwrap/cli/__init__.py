"""RUNS AS WHOEVER TYPED IT: one file a command. Only root's programs change root's files."""
