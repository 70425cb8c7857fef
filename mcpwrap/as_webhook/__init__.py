"""RUNS AS mcpwrap-webhook: posts pending approvals. It sees all, and may answer none."""
