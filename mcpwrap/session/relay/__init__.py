"""Relay of a session's lines, judged one by one, and the server's exit."""
