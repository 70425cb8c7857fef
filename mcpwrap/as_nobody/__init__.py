"""RUNS AS nobody: reads what anybody may have written, for root, and can do nothing else."""
