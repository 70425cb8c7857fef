"""RUNS AS mcpwrap-front: the front, TLS and DNS egress for servers without proxy support."""
