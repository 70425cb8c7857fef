"""Name of the secret that seals a server's OAuth logins; only root makes this secret."""

KEY = "MCPWRAP_OAUTH_KEY"
