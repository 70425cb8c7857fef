"""PURE: definitions of a server: its lists as an agent may see them, and their collection."""
