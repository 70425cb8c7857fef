"""Parts of an HTTP server: connection table, accept loop, and the body of a request."""
