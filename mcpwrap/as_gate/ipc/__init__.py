"""RUNS AS mcpwrap-gate: packets between the monitor and its children."""
