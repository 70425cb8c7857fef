"""fastmcp proxy for one remote server. RUNS AS an account of its own, in fastmcp's venv.

Its arguments: the URL, the token, and a port of 127.0.0.1 at which it is found.
"""

import sys

from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server import create_proxy

url, token, port = sys.argv[1:]
there = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
proxy = create_proxy(there)
proxy.run("http", host="127.0.0.1", port=int(port), show_banner=False, log_level="ERROR")
