"""Log files on this machine: audit and its keys, egress log, follower of growing files."""
