"""mcpwrap: each MCP server runs under a Unix account of its own, behind one gate."""

__version__ = "0.2.0.dev0"
