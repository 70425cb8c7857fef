"""RUNS AS THE CALLER: `mcpwrap policy`: check, test, explain, replay, default."""
