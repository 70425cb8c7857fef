"""The host's side of `make soak`: schedule, machine, judgement and report."""
