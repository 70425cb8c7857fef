"""Ownership checks: only root can change the code that servers execute and load. Reads only."""
