"""Lists of a hub: what members list, and what its agent sees of it."""
