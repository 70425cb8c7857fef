"""PURE: counters, and their Prometheus text format."""
