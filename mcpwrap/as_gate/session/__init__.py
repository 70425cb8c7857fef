"""RUNS AS mcpwrap-gate, in a session's process: admits, relays and judges one session."""
