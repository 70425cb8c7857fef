"""RUNS AS mcpwrap-gate: approval broker, its connections, authentication and decisions."""
