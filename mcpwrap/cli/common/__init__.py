"""RUNS AS THE CALLER: output, input files and execution of root's program, for all commands."""
