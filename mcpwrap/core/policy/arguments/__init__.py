"""PURE: arguments of a call that are SQL or shell command lines, by schema or by name."""
