"""RUNS AS THE CALLER: `mcpwrap audit`: show, follow, export, verify, prune."""
