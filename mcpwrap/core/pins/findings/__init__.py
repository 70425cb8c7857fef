"""PURE: findings: parts of a definition that may deceive a person or instruct a model."""
