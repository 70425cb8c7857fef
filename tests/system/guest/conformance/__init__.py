"""The official conformance suite against our server, which speaks over its stdin and stdout."""
