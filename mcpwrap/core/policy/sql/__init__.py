"""PURE: SQL statements: their kind, their tables, and how many rows they return or change."""
