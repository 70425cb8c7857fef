"""PURE: formats between a hub, its supervisor and the gate."""
