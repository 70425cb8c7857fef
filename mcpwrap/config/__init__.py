"""PURE: what an operator may write in `config.toml`, and what it means."""
