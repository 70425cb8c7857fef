"""Processes: descendants, exit, signals by descriptor, shared memory, start time, zeroizing."""
