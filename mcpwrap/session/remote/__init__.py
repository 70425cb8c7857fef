"""Client of a remote server: lines to HTTP requests; for the wrapper and `mcpwrap run --url`."""
