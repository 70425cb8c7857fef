"""PURE: parser of policy files: YAML to rules, with every error at its line."""
