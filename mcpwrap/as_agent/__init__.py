"""RUNS AS THE AGENT: stub, `mcpwrap run` and session probe, without a privilege of their own."""
