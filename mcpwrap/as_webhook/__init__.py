"""RUNS AS mcpwrap-webhook: posts what waits for approval. It sees all, and may answer nothing."""
