"""PURE: globs, URIs, and text made safe to show."""
