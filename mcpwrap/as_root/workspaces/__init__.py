"""RUNS AS ROOT, at each start of a wrapper: ID-mapped workspaces in its mount namespace."""
