"""PURE: formats between the Python server, the worker and a run slot, and of the worker's file."""
