"""Run of the official suite against a URL, with its results as JSON. Runs in a machine.

Its arguments: the URL, and a JSON object with the suite's options for each of its runs. The suite
tries a foreign Host only where the URL says `localhost`. For any other URL that scenario is run
again by a relay, which puts the true host wherever the suite says `localhost`, and changes no more.
"""

import json
import selectors
import socket
import sys
import threading
import urllib.parse
from contextlib import suppress

from tests.system.guest.conformance import suite

LOCAL = ("localhost", "127.0.0.1")
REBINDING = "dns-rebinding-protection"


def relay(host: bytes, port: int) -> int:
    """Serve on a port of localhost, which is returned, and continue in the background."""
    listener = socket.create_server(("localhost", 0))
    own: int = listener.getsockname()[1]

    def pass_on(one: socket.socket) -> None:
        with suppress(OSError), one, socket.create_connection((host.decode(), port)) as other:
            names = {one: other, other: one}
            with selectors.DefaultSelector() as selector:
                for each in names:
                    selector.register(each, selectors.EVENT_READ)
                while True:
                    for key, _ in selector.select():
                        source = key.fileobj
                        assert isinstance(source, socket.socket)
                        data = source.recv(1 << 20)
                        if not data:
                            return
                        said = b"localhost:%d" % own
                        data = data.replace(said, b"%b:%d" % (host, port))
                        names[source].sendall(data)

    def serve() -> None:
        while True:
            threading.Thread(target=pass_on, args=listener.accept()[:1], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return own


def main() -> None:
    url, runs = sys.argv[1], json.loads(sys.argv[2])
    found = suite.run(url, runs)
    place = urllib.parse.urlsplit(url)
    assert place.hostname
    if place.hostname not in LOCAL:
        port = relay(place.hostname.encode(), place.port or 80)
        again = {name: ["--scenario", REBINDING, "--spec-version", name] for name in runs}
        for name, status in suite.run(f"http://localhost:{port}{place.path}", again).items():
            found[name] |= status
    print(json.dumps(found))


if __name__ == "__main__":
    main()
