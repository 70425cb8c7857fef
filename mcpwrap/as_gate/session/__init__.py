"""RUNS AS mcpwrap-gate, in a session's process: admission, relay and gate of one session."""
