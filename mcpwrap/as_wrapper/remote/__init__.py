"""RUNS AS mcpw-NAME, as the program of a server that is elsewhere: its lines by HTTP."""
