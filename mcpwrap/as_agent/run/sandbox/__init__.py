"""RUNS AS THE AGENT: the sandbox of `mcpwrap run`, a layer at a time."""
