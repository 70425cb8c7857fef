"""Thin calls to Linux and systemd. Nothing here decides."""
