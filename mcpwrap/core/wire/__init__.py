"""PURE: formats of what one principal writes and another reads: sockets, pipes, files."""
