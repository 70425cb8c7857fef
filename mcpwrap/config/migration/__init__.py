"""PURE: proposal of a server's definition from an entry of an agent's file."""
