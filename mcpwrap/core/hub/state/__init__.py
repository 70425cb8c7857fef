"""State of a hub's session: agent, members, and the actions that are to be done."""
