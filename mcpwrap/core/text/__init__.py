"""PURE: globs, URIs, counts, and text made safe to show."""
