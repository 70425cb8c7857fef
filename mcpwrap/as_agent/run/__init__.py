"""RUNS AS THE AGENT: `mcpwrap run`, one server in a sandbox, without the installed package."""
