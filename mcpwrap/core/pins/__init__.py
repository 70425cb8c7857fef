"""PURE: pins: definitions of a server that were accepted, and the ones that are held back."""
