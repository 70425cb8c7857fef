"""RUNS AS mcpwrap-http: transports of MCP over HTTP, one for each protocol era."""
