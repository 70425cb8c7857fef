"""PURE: limits of calls: their rate, repeated calls, and failures in a row."""
