"""PURE: shell command lines: their commands, whatever wraps these, and what they delete or push."""
