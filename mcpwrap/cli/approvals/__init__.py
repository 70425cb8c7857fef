"""RUNS AS WHOEVER TYPED IT: `mcpwrap approvals`."""
