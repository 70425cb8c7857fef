"""RUNS AS mcpw-NAME: MCP server that has code executed by the worker, and executes none."""
