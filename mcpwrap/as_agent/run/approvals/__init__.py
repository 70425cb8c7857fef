"""RUNS AS THE AGENT: approvals of `mcpwrap run`: broker, its socket, terminal, notifications."""
