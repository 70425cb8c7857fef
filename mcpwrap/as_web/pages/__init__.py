"""RUNS AS mcpwrap-web: handlers of the pages behind the login."""
