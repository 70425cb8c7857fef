"""PURE: JSON, TOML and YAML documents as spans of text, edited in place."""
