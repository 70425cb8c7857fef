"""Audit log of sessions: recorder, chained files, master chain, journal notes."""
