"""PURE: counters of the gate, and their Prometheus text format."""
