"""HTTP clients of the worker, under the account of a Python server. Runs in a machine as root."""

import http.client
import json
import os
import pwd
import threading
import time
from collections.abc import Sequence
from typing import Any

ADDRESS, PORT = "127.79.0.1", 52200
WAITS = "import threading; threading.Event().wait()"
Reply = dict[str, Any]


class WorkerClient:
    """Connection with one request."""

    def __init__(self, token: str) -> None:
        self._connection = http.client.HTTPConnection(ADDRESS, PORT, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def send(self, code: str) -> None:
        """Request a run."""
        body = json.dumps({"code": code})
        self._connection.request("POST", "/execute", body, self._headers)

    def reply(self) -> Reply:
        """Return status, `Retry-After` and content of the reply, and the time it came at."""
        response = self._connection.getresponse()
        content = json.loads(response.read())
        return {
            "status": response.status,
            "retry_after": response.getheader("Retry-After"),
            "content": content,
            "at_s": time.monotonic(),
        }

    def get(self, path: str) -> str:
        """Return the text of a page."""
        self._connection.request("GET", path, headers=self._headers)
        return self._connection.getresponse().read().decode()

    def hang_up(self) -> None:
        """Close the connection."""
        self._connection.close()


def become(server: str) -> None:
    """Change to the account of a Python server, for good: packet rules let no other connect."""
    account = pwd.getpwnam(f"mcpw-{server}")
    os.setgroups([])
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)


def execute(token: str, code: str) -> Reply:
    """Request one run; return the reply."""
    client = WorkerClient(token)
    client.send(code)
    reply = client.reply()
    client.hang_up()
    return reply


def health() -> dict[str, Any]:
    """Return the worker's totals."""
    found: dict[str, Any] = json.loads(WorkerClient("none").get("/healthz"))
    return found


def await_health(**wanted: int) -> None:
    """Wait until the worker has these totals.

    Raises:
        TimeoutError: it has not, in a minute.
    """
    give_up_at = time.monotonic() + 60
    while not wanted.items() <= (found := health()).items():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{found}, not {wanted}")
        time.sleep(0.02)


def overflow(server: str, token: str, slots: int, queued: int) -> dict[str, Any]:
    """Fill slots and queue, then request one more; free one place, and request it again."""
    become(server)
    holding = [WorkerClient(token) for _ in range(slots)]
    for client in holding:
        client.send(WAITS)
    await_health(running=slots)
    waiting = [WorkerClient(token) for _ in range(queued)]
    for number, client in enumerate(waiting):
        client.send(f"print({number})")
        await_health(queued=number + 1)
    refused = execute(token, "print('one too many')")
    full = health()
    waiting.pop().hang_up()
    await_health(queued=queued - 1)
    accepted = WorkerClient(token)
    accepted.send("print('after a place was free')")
    await_health(queued=queued)
    for client in holding:
        client.hang_up()
    replies = [client.reply() for client in [*waiting, accepted]]
    await_health(running=0, queued=0)
    return {
        "refused": refused,
        "full": full,
        "replies": replies,
        "metrics": WorkerClient(token).get("/metrics"),
    }


def flood_code(number: int) -> str:
    """Return the code of one run of a flood, which no other run has."""
    return f"print({number})  # of the flood"


def flood(server: str, token: str, numbers_by_client: Sequence[Sequence[int]]) -> list[list[Reply]]:
    """Have each client request its runs one after the other, and obey `Retry-After`.

    Return the replies to each run, in the order of the numbers.
    """
    become(server)
    replies: dict[int, list[Reply]] = {}

    def use(numbers: Sequence[int]) -> None:
        for number in numbers:
            replies[number] = [execute(token, flood_code(number))]
            while (last := replies[number][-1])["status"] == 429:
                time.sleep(int(last["retry_after"]))
                replies[number].append(execute(token, flood_code(number)))

    threads = [threading.Thread(target=use, args=(numbers,)) for numbers in numbers_by_client]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [replies[number] for number in sorted(replies)]
