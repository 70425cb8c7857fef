"""PURE: files in which agents list their servers, and the rewriting of single entries."""
