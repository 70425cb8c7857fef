"""PURE: what root should do to make the machine match the configuration, as data."""
