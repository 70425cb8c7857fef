"""RUNS AS WHOEVER TYPED IT: output, input files, and becoming root, shared by commands."""
