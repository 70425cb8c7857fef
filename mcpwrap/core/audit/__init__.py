"""PURE: audit records, their hash chain, its verification, and how they are shown."""
