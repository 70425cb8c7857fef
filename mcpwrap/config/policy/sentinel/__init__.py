"""PURE: policies of MCP Sentinel: their parser, and their conversion into ours."""
