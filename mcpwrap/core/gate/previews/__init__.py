"""PURE: previews of held calls, which the gate requests from a read-only tool of the server."""
