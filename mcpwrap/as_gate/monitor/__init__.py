"""RUNS AS mcpwrap-gate, in the monitor: accepted connections, forks, packets of children."""
