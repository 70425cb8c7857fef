"""RUNS AS THE CALLER: `mcpwrap unwrap`: restores agents' files that `wrap` rewrote."""
