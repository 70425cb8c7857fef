"""PURE: parsers and models of `config.toml`, the policy, agents' files and proposals."""
