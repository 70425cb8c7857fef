"""RUNS AS THE AGENT: stub, `mcpwrap run` and session probe, without privileges."""
