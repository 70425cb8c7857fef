"""RUNS AS mcpwrap-gate: state that the monitor holds and a child inherits by fork."""
