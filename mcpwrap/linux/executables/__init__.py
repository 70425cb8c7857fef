"""Ownership checks: root alone can change the code that servers execute and load. Reads only."""
