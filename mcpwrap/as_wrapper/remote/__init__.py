"""RUNS AS mcpw-NAME, as mcpwrap-remote: bridge from a session's lines to a server's HTTP."""
