"""RUNS AS mcpw-NAME: MCP server that offers the tools of other servers, and has none itself."""
