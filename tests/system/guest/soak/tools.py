"""Calls of each kind of session of `make soak`, and the expected answer to each.

A call returns its outcome, and the text of its answer: `answered`; `refused`, as the policy wants
it; or `wrong`, which no fault explains.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any

Result = tuple[str, str]
REFUSED = "Refused"
PROJECT = "/home/alice/project"
PAGE = "https://api.good.test/small"
LONG = "trigger-long-running-operation"


def marked(mark: str) -> dict[str, Any]:
    """Return a call's mark beside its arguments: the audit has it with the params."""
    return {"soak": mark}


async def _tool(client: Any, mark: str, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
    """Call a tool; return whether it is an error, and its text."""
    result = await client.call_tool(tool, arguments, meta=marked(mark))
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return bool(result.is_error), text


def _judged(text: str, *, is_error: bool, wanted: str) -> Result:
    """Return the outcome of a call whose answer has this text in it."""
    if not is_error and wanted in text:
        return "answered", ""
    return "failed" if is_error else "wrong", text


async def _asked(
    client: Any, mark: str, tool: str, arguments: dict[str, Any], *, wanted: str
) -> Result:
    is_error, text = await _tool(client, mark, tool, arguments)
    return _judged(text, is_error=is_error, wanted=wanted)


async def echo(client: Any, mark: str) -> Result:
    return await _asked(client, mark, "echo", {"message": mark}, wanted=mark)


async def take_long(client: Any, mark: str) -> Result:
    if random.random() < 0.7:
        return await echo(client, mark)
    job = {"duration": random.uniform(1, 5), "steps": 4}
    return await _asked(client, mark, LONG, job, wanted="completed")


async def search(client: Any, mark: str) -> Result:
    return await _asked(client, mark, "search_nodes", {"query": mark}, wanted="entities")


async def noon(client: Any, mark: str) -> Result:
    given = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return await _asked(client, mark, "convert_time", given, wanted="21:00")


async def blocked(client: Any, mark: str) -> Result:
    """Call a tool that the policy blocks, and one that it does not."""
    if random.random() < 0.5:
        return await echo(client, mark)
    is_error, text = await _tool(client, mark, "get-env", {})
    is_refused = is_error and REFUSED in text
    return ("refused", "") if is_refused else ("wrong", f"not blocked: {text}")


async def limited(client: Any, mark: str) -> Result:
    is_error, text = await _tool(client, mark, "get_current_time", {"timezone": "UTC"})
    if is_error and REFUSED in text and "calls in" in text:
        return "refused", ""
    return _judged(text, is_error=is_error, wanted="UTC")


async def approved(client: Any, mark: str) -> Result:
    query = {"query": f"CREATE TABLE IF NOT EXISTS t (name TEXT) -- {mark}"}
    return await _asked(client, mark, "create_table", query, wanted="success")


async def workspace(client: Any, mark: str) -> Result:
    """Write a file of the project, and read it again."""
    path = f"{PROJECT}/soak-{random.randrange(20)}.txt"
    given = {"path": path, "content": mark}
    is_error, text = await _tool(client, mark, "write_file", given)
    if is_error:
        return "failed", text
    return await _asked(client, f"{mark}+", "read_text_file", {"path": path}, wanted=mark)


async def secret(client: Any, mark: str) -> Result:
    """Check that the server has its secret, and that the agent does not get it."""
    is_error, text = await _tool(client, mark, "get-env", {})
    if "canary" in text:
        return "wrong", "the secret came through"
    return _judged(text, is_error=is_error, wanted="API_KEY")


async def fetch(client: Any, mark: str) -> Result:
    given = {"url": f"{PAGE}?{mark}"}
    return await _asked(client, mark, "fetch", given, wanted="Contents of")


async def far(client: Any, mark: str) -> Result:
    return await _asked(client, mark, "test_simple_text", {}, wanted="")


CALLS: dict[str, Callable[[Any, str], Awaitable[Result]]] = {
    "quick": echo,
    "short": search,
    "long": take_long,
    "several-everything": echo,
    "several-time": noon,
    "other-account": noon,
    "blocked": blocked,
    "limited": limited,
    "approved": approved,
    "workspace": workspace,
    "secret": secret,
    "direct": noon,
    "egress": fetch,
    "remote": far,
    "http": noon,
    "crowded-1": noon,
    "crowded-2": noon,
}
