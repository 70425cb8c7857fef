"""RUNS AS THE CALLER: `mcpwrap wrap`: agents' entries become servers that root applies."""
