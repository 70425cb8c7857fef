"""mcpwrap: every MCP server becomes a Unix account of its own."""

__version__ = "0.2.0.dev0"
