"""RUNS AS mcpwrap-proxy or mcpwrap-intercept: health check (watchdog) beside a Squid instance."""
