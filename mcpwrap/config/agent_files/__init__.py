"""PURE: the files in which agents list their servers, and how one entry of them is rewritten."""
