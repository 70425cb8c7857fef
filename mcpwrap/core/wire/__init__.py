"""PURE: formats that one principal writes and another reads: sockets, pipes, files."""
