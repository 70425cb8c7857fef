"""PURE: the plan, as data: steps by which root makes the machine match the configuration."""
