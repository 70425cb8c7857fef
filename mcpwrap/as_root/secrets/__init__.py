"""RUNS AS ROOT: the secret store, and the minting of secrets at each start of a wrapper."""
