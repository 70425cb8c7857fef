"""RUNS AS mcpw-NAME, within mcpwrap-remote: gets tokens, keeps them sealed, renews them."""
