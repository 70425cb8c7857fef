"""RUNS AS mcpw-NAME, within mcpwrap-remote: OAuth client; gets, seals and renews tokens."""
