"""PURE: MCP and JSON-RPC: framing, strict JSON, methods, confusable keys and names."""
