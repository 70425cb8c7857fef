"""RUNS AS ROOT, ONCE: `apply` and `accept`, which carry out a plan that root computed itself."""
