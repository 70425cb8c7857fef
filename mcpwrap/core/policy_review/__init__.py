"""PURE: a policy beside what agents did and servers list: suggestions, rules without effect."""
