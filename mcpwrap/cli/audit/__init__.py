"""RUNS AS WHOEVER TYPED IT: `mcpwrap audit`."""
