"""RUNS AS mcpw-NAME: the wrapper, which starts a server for each session, and ends it."""
