"""RUNS AS THE AGENT: `mcpwrap run`: a server in a sandbox, with nothing installed."""
