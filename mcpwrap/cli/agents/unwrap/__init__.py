"""RUNS AS THE CALLER: `mcpwrap unwrap`: agents' files restored as before `wrap`."""
