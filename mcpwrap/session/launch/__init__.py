"""Launch of a server's process in its sandbox."""
