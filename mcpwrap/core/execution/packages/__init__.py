"""PURE: packages of a run: requirements, metadata of scripts, locks and errors of uv."""
