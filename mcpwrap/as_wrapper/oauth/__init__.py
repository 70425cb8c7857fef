"""RUNS AS mcpw-NAME, in mcpwrap-remote: OAuth client with login, sealed tokens and refresh."""
