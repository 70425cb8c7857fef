"""RUNS AS mcpw-NAME, as the program of a remote server: a bridge from its lines to HTTP."""
