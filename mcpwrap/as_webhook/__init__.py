"""RUNS AS mcpwrap-webhook: posts pending approvals to a URL. It cannot answer them."""
