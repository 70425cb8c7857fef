"""RUNS AS mcpw-NAME, in mcpwrap-remote: OAuth client: login, sealed tokens, renewal."""
