"""RUNS AS nobody: parser of a proposal for root, in a sandbox without files or sockets."""
