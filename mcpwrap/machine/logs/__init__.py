"""Log files on this machine: audit and its keys, egress log, following a file."""
