"""RUNS AS mcpwrap-gate, in the monitor: accepts connections, forks, dispatches packets."""
