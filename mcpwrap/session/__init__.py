"""What a session is made of: moving lines, and starting a server in its sandbox."""
