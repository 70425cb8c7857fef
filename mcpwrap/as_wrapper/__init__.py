"""RUNS AS mcpw-NAME: the wrapper, which starts and ends one server's sessions."""
