"""RUNS AS nobody: parses untrusted files for root, in a sandbox, and can do nothing else."""
