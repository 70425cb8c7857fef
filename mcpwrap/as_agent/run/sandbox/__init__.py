"""RUNS AS THE AGENT: sandbox of `mcpwrap run`: namespaces, Landlock, seccomp filters."""
