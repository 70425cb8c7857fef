"""RUNS AS mcpwrap-gate: pins of servers: their files, the processes that write them, questions."""
