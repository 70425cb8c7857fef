"""RUNS AS ROOT: Squid's instances, resolvers, and the watchdog of the packet rules."""
