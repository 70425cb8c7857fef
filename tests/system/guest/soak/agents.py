"""Agents that use servers without end, with the official client. Runs in the machine as an account.

Its arguments: the name of a process of `model.PROCESSES`, a JSON object of URLs by kind, and the
file for the calls, each one line. It ends when there is `model.STOP`.
"""

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from tests.system.guest.soak import tools
from tests.system.guest.soak.model import KINDS, PROCESSES, STOP, Call, Kind

# A client of the official library waits without end. The gate and the wrapper time out before that.
PATIENCE_S = 60.0
# After a disconnection an agent reconnects at once, and then less often.
AGAIN_S, LAST_AGAIN_S = 0.2, 1.0
START_S = 3.0  # in which the agents of a process begin
FULL_S = 3.0  # after a refusal for lack of a place
MAX_TEXT_CHARS = 400
BUSY = "sessions are in use"


class Log:
    """File of calls, one line each."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, call: Call) -> None:
        """Add a call, by one system call: a kill leaves whole lines."""
        os.write(self._fd, json.dumps(asdict(call)).encode() + b"\n")


class Agent:
    """Agent of one kind: one session after the other."""

    def __init__(self, kind: Kind, url: str, log: Log) -> None:
        self._kind, self._url, self._log = kind, url, log
        self._call = tools.CALLS[kind.name]
        self._sessions = self._calls = 0
        self._session_s = self._since_s = self._began_s = 0.0

    async def run(self) -> None:
        """Hold sessions until the end of the load."""
        await anyio.sleep(random.uniform(0, START_S))
        again_s = AGAIN_S
        while not STOP.exists():
            good = await self._session()
            await anyio.sleep(self._pause_s() if good else again_s)
            again_s = AGAIN_S if good else min(LAST_AGAIN_S, again_s * 1.5)

    def _pause_s(self) -> float:
        return random.uniform(0.2, 1.8) * self._kind.pause_s

    async def _session(self) -> bool:
        """Hold one session; return whether it ended as it should."""
        self._sessions += 1
        self._session_s = self._since_s = self._began_s = time.monotonic()
        with tempfile.TemporaryFile("w+") as errlog:
            try:
                with anyio.fail_after(PATIENCE_S * 4):
                    async with Client(self._transport(errlog)) as client:
                        await self._use(client)
                        self._began_s = time.monotonic()
            except TimeoutError:
                self._note("silent", "", "the session did not come to its end")
                return False
            except Exception as error:  # noqa: BLE001 - a session fails in any way it likes
                errlog.seek(0)
                return await self._failed(error, errlog.read())
        return True

    def _transport(self, errlog: Any) -> Any:
        if self._url:
            return self._url
        stub = StdioServerParameters(command="mcpwrap-connect", args=[self._kind.server])
        return stdio_client(stub, errlog)

    async def _use(self, client: Any) -> None:
        for _ in range(random.randint(*self._kind.calls)):
            self._calls += 1
            self._began_s = time.monotonic()
            mark = f"{self._kind.name}-{os.getpid()}-{self._calls}"
            try:
                with anyio.fail_after(PATIENCE_S):
                    outcome, text = await self._call(client, mark)
            except TimeoutError:
                self._note("silent", mark, f"no answer in {PATIENCE_S:.0f} s")
                raise _CutOffError from None
            self._note(outcome, mark, text)
            self._since_s = time.monotonic()
            if STOP.exists():
                return
            await anyio.sleep(self._pause_s())

    async def _failed(self, error: BaseException, stderr: str) -> bool:
        """Record how a session ended, unless it is recorded as silent. Without a place, wait."""
        leaves = list(_leaves(error))
        if any(isinstance(leaf, _CutOffError) for leaf in leaves):
            return False
        why = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves)
        is_full = self._kind.is_contended and BUSY in f"{why} {stderr}"
        text = f"{stderr.strip()} [{why}]"
        self._note("refused" if is_full else "failed", "", text)
        if is_full:
            await anyio.sleep(random.uniform(0.5, 1.5) * FULL_S)
        return is_full

    def _note(self, outcome: str, mark: str, text: str) -> None:
        self._log.write(
            Call(
                kind=self._kind.name,
                session=f"{os.getpid()}-{self._kind.name}-{self._sessions}",
                outcome=outcome,
                began_s=self._began_s,
                ended_s=time.monotonic(),
                since_s=self._since_s,
                session_s=self._session_s,
                mark=mark,
                text=text[-MAX_TEXT_CHARS:],
            )
        )


class _CutOffError(Exception):
    """Call without an answer, which is recorded as such."""


def _leaves(error: BaseException) -> Any:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def run(process: str, urls: dict[str, str], log: Log) -> None:
    """Run all agents of this process in parallel."""
    async with anyio.create_task_group() as group:
        for name in PROCESSES[process]:
            agent = Agent(KINDS[name], urls.get(name, ""), log)
            run_agent: Callable[[], Awaitable[None]] = agent.run
            group.start_soon(run_agent)


def main() -> None:
    process, urls, path = sys.argv[1:]
    anyio.run(run, process, json.loads(urls), Log(path))


if __name__ == "__main__":
    main()
