"""RUNS AS mcpwrap-gate: approval broker and its sockets, authentication, decisions."""
