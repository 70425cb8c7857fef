"""Guided first run of a machine: one step after the other, each by the command that it shows."""
