"""Requests to a worker that are held open. Runs inside the machine, with the system's Python."""

import http.client
import json
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlsplit

END_S = 120.0


def hold(url: str, ca_file: str, token: str, code: str, number: int) -> int:
    """Send a code so many times; print the statuses, and end all when standard input ends."""
    held = []
    for _ in range(number):
        connection = _connected(url, ca_file)
        _send(connection, token, code, Accept="application/x-ndjson")
        held.append((connection, connection.getresponse()))
    print(json.dumps([response.status for _, response in held]), flush=True)
    sys.stdin.read()
    return len(held)


def results(url: str, ca_file: str, token: str, code: str, number: int) -> list[tuple[int, str]]:
    """Have a code executed so many times at once; return each status, and output or error."""
    with ThreadPoolExecutor(number) as pool:
        each = [pool.submit(_executed, url, ca_file, token, code) for _ in range(number)]
        return [one.result() for one in each]


def _connected(url: str, ca_file: str) -> http.client.HTTPSConnection:
    parts = urlsplit(url)
    context = ssl.create_default_context(cafile=ca_file)
    return http.client.HTTPSConnection(
        parts.hostname or "", parts.port, timeout=END_S, context=context
    )


def _send(connection: http.client.HTTPSConnection, token: str, code: str, **headers: str) -> None:
    every = {"Authorization": f"Bearer {token}", **headers}
    connection.request("POST", "/execute", json.dumps({"code": code}), every)


def _executed(url: str, ca_file: str, token: str, code: str) -> tuple[int, str]:
    with closing(_connected(url, ca_file)) as connection:
        _send(connection, token, code)
        response = connection.getresponse()
        reply = json.loads(response.read())
        return response.status, str(reply["error"] or reply["stdout"])
