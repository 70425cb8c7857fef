"""RUNS AS mcpw-NAME: packages of runs, resolved and unpacked by uv, never executed."""
