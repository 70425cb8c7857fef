"""RUNS AS mcpwrap-proxy or mcpwrap-intercept, in the unit of an instance of Squid."""
