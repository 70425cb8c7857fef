"""The secret with which a server's logins are sealed: made by root, and by nobody else."""

KEY = "MCPWRAP_OAUTH_KEY"
