"""RUNS AS mcpwrap-worker: HTTP service that gives each run of code a slot of its own."""
