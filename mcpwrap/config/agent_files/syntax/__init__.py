"""PURE: JSON, TOML and YAML documents as spans, edited in place."""
