"""RUNS AS mcpwrap-http: HTTP listener of one agent for one server; the gate judges the messages."""
