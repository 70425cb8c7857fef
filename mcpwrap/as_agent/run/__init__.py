"""RUNS AS THE AGENT: `mcpwrap run`, one server in a sandbox, with nothing installed."""
