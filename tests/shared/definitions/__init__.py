"""Definitions of tools: those of real servers, and poisoned ones."""
