"""RUNS AS mcpwrap-next: start of the next version of a server, for its definitions alone."""
