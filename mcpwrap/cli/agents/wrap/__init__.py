"""RUNS AS THE CALLER: `mcpwrap wrap`: entries of agents' files become servers."""
