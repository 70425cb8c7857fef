"""Environment variables of the client of a remote server."""

URL = "MCPWRAP_REMOTE"
HEADERS_FILE = "MCPWRAP_HEADERS"  # of a wrapper, which replaces the file
HEADERS = "MCPWRAP_HEADER_VALUES"  # of `mcpwrap run`: an object with the headers themselves
CA_FILE = "SSL_CERT_FILE"  # read by OpenSSL
