"""RUNS AS mcpwrap-gate, in the monitor: accepts connections, forks, handles children's packets."""
