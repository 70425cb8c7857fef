"""PURE. The hub: members' names, lists and messages as one MCP server."""
