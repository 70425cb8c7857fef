"""RUNS AS mcpwrap-http: transports of MCP over HTTP, of each protocol version."""
