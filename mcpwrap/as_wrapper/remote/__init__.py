"""RUNS AS mcpw-NAME, as mcpwrap-remote: bridge from the lines of a session to HTTP."""
