"""RUNS AS WHOEVER TYPED IT: `mcpwrap unwrap`."""
