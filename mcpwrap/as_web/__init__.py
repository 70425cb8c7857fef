"""RUNS AS mcpwrap-web: the web page for reading and answering pending approvals."""
