"""Test bed: Debian roots that are built once, and machines that boot from them in a second."""
