"""RUNS AS ROOT: Squid instances, DNS resolvers, and the watchdog of the packet rules."""
