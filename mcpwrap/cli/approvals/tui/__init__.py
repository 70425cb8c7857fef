"""RUNS AS THE CALLER: full-screen view of `mcpwrap approvals`."""
