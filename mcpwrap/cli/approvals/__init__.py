"""RUNS AS THE CALLER: `mcpwrap approvals`: list, show, watch, approve, deny, notify, passwd."""
