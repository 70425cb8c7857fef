"""RUNS AS mcpwrap-http: client of the gate: connections, sessions and their pool."""
