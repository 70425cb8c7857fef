"""Web server with one page of the agent's own. Runs inside the machine, as the agent.

It is on another port of the machine than the page for approvals: for cookies, the same site.
"""

import http.server
import sys
import threading
from pathlib import Path

PAGE = Path("/home/alice/page.html")


class Handler(http.server.BaseHTTPRequestHandler):
    """HTTP handler that sends the page as it is now, whatever the path."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE.read_bytes())


def serve(port: int) -> None:
    """Serve until the input ends."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("listens", flush=True)
    sys.stdin.read()
