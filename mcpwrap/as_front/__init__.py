"""RUNS AS mcpwrap-front: the way out for servers that know no proxy."""
