"""RUNS AS ROOT: the secret store, and secrets minted at each start of a wrapper."""
