"""Ordinary use of real servers: calls of two hours of an agent's work, which no policy may stop."""
