"""RUNS AS nobody: proposal reader for root, in a sandbox without files or sockets."""
