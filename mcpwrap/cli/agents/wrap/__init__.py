"""RUNS AS WHOEVER TYPED IT: `mcpwrap wrap`."""
