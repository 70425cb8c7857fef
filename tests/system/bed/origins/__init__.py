"""RUNS AS ROOT in a network namespace of its own: the hosts that machines of the bed can reach."""
