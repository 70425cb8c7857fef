"""RUNS AS mcpwrap-web: the page on which a person reads what waits for approval, and answers."""
