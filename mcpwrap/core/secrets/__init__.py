"""PURE: encryption of secrets at rest and for one start, and redaction of their values."""
