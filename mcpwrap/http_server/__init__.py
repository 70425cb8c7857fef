"""Parts of an HTTP server: connection table and accept loop."""
