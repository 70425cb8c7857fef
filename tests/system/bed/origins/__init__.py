"""Hosts that machines of the bed can reach. RUNS AS ROOT in a network namespace of its own."""
