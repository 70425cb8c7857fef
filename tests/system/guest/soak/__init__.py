"""Load, faults and samples of `make soak`. Runs inside a machine."""
