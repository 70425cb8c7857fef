"""PURE: steps from the observed to the desired state."""
