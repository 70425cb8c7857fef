"""PURE: MCP over HTTP: request rules, headers, SSE, replay buffer, status codes, upstream."""
