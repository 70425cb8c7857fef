"""Members of hubs, attackers in the place of a hub's program, and agents that use hubs."""
