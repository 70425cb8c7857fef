"""RUNS AS WHOEVER TYPED IT: `mcpwrap policy`."""
