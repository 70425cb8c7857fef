"""RUNS AS ROOT, ONCE: the secret store, and secrets minted for one start of a wrapper."""
