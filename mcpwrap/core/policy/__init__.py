"""PURE: policy rules, compiled, and the decision on a call or a result."""
