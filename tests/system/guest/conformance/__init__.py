"""The official conformance suite against a server of ours that speaks over its stdin and stdout."""
