"""Official conformance suite against our server, which communicates over its stdin and stdout."""
