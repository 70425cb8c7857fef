"""RUNS AS mcpwrap-gate: the door through which every byte of an agent enters."""
