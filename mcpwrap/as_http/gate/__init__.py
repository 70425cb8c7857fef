"""RUNS AS mcpwrap-http: sessions of the gate that a listener holds."""
