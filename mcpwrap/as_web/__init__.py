"""RUNS AS mcpwrap-web: the web page on which a person reads and answers pending approvals."""
