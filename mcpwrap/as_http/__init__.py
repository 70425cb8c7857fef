"""RUNS AS mcpwrap-http: hears one agent of one server by HTTP, and speaks to the gate for it."""
