"""RUNS AS mcpwrap-http: one agent's way to one server over HTTP; the gate judges what is said."""
