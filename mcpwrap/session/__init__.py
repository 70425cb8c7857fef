"""Parts of a session: relay of lines, audit records, and the start of a server in its sandbox."""
