"""RUNS AS mcpwrap-gate: sessions of hubs and of their members: agent, catalogue, definitions."""
