"""Checks of `mcpwrap doctor` that look at the machine."""
