"""RUNS AS mcpwrap-gate: approval broker, approver connections, authentication and decisions."""
