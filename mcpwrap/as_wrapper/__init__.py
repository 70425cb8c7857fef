"""RUNS AS mcpw-NAME: starts one server, as often as the gate asks, and ends what it started."""
