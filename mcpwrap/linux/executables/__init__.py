"""Code that servers execute and load, and whether root alone can change it. Reads only."""
