"""RUNS AS WHOEVER TYPED IT: full-screen view of `mcpwrap approvals`."""
