"""Encoder of server-sent events (SSE).

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.5.
"""

STILL_HERE = b":\n\n"  # a comment: who has gone is found out


def encode(data: bytes, *, event: str = "message", id_: str = "") -> bytes:
    """Return one event. `data` is one line, as all JSON is that we write."""
    head = f"event: {event}\nid: {id_}\n" if id_ else f"event: {event}\n"
    return head.encode() + b"data: " + data + b"\n\n"


def priming(id_: str, retry_ms: int) -> bytes:
    """Return an event without data: from it on the stream can be asked for again.

    Source: MCP 2025-11-25, transports, "Sending Messages to the Server", 6.
    """
    return f"id: {id_}\nretry: {retry_ms}\ndata: \n\n".encode()
