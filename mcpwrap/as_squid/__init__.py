"""RUNS AS mcpwrap-proxy or mcpwrap-intercept: health check (watchdog) of a Squid instance."""
