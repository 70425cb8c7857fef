"""Agent's calls by the official `mcp` client. Each story runs inside the machine.

This file itself is sent into the machine: `script` appends one call to its text. The result of a
story is printed as JSON, and the test checks it.
"""

import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO


def script(story: str, **values: Any) -> str:
    """Return the program that runs one of the stories below and prints its result."""
    text = inspect.getsource(sys.modules[__name__])
    call = f"print(json.dumps(anyio.run({story}, {values!r})))"
    return f"{text}\n\nimport json\n\nimport anyio\n{call}\n"


@contextmanager
def stderr_to(where: str) -> Iterator[TextIO]:
    """Open the standard error that the agent gives its servers: inherit, null, pty or a path."""
    if where == "inherit":
        yield sys.stderr
    elif where == "pty":
        leader, follower = os.openpty()
        with os.fdopen(follower, "w") as terminal:
            yield terminal
        os.close(leader)
    else:
        with Path("/dev/null" if where == "null" else where).open("w") as file:
            yield file


def transport(values: dict[str, Any], errlog: TextIO) -> Any:
    """Return a server's entry in an agent's configuration; a wrapped one, if by its name only."""
    from mcp import StdioServerParameters, stdio_client

    if "url" in values:
        return values["url"]
    command = values.get("command", "mcpwrap-connect")
    args = values.get("args", [] if "command" in values else [values["server"]])
    return stdio_client(StdioServerParameters(command=command, args=args), errlog)


def text_of(result: Any) -> str:
    """Return the text of a tool's result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


async def call_tool(values: dict[str, Any]) -> str:
    """Call one tool, in the era of the server."""
    from mcp import Client

    async with Client(transport(values, sys.stderr)) as client:
        return text_of(await client.call_tool(values["tool"], values["arguments"]))


async def calls_tour(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Call one tool after the other, in one session; each call is a name and arguments."""
    from mcp import Client

    found = []
    mode = values.get("mode", "auto")
    async with Client(transport(values, sys.stderr), mode=mode) as client:
        await client.list_tools()
        for tool, arguments in values["calls"]:
            result = await client.call_tool(tool, arguments)
            structured = result.structured_content or {}
            found.append({"text": text_of(result), "structured": structured})
            found[-1] |= {"is_error": bool(result.is_error), "meta": result.meta or {}}
    return found


async def run_python_calls(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Call `run_python` once for each set of arguments, in one session."""
    from mcp import Client

    found = []
    mode = values.get("mode", "auto")
    async with Client(transport(values, sys.stderr), mode=mode) as client:
        for arguments in values["calls"]:
            result = await client.call_tool("run_python", arguments)
            blocks = [block.model_dump(mode="json", exclude_none=True) for block in result.content]
            found.append(
                {
                    "is_error": bool(result.is_error),
                    "text": blocks[0].get("text", ""),
                    "content": blocks,
                    "structured": result.structured_content or {},
                }
            )
    return found


async def tool_tour(values: dict[str, Any]) -> dict[str, Any]:
    """List the tools of a server, and call one."""
    from mcp import Client

    async with Client(transport(values, sys.stderr)) as client:
        return {
            "version": client.protocol_version,
            "tools": sorted(tool.name for tool in (await client.list_tools()).tools),
            "text": text_of(await client.call_tool(values["tool"], values["arguments"])),
        }


async def handshake_tour(values: dict[str, Any]) -> dict[str, Any]:
    """Use every feature of the handshake era, with server-everything."""
    import mcp_types as types
    from mcp import Client

    seen: dict[str, Any] = {"progress": []}

    async def sample(_context: Any, params: Any) -> Any:
        seen["sampled"] = params.messages[0].content.text
        text = types.TextContent(type="text", text="a sample")
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def elicit(_context: Any, params: Any) -> Any:
        seen["elicited"] = params.message
        return types.ElicitResult(action="decline")

    async def list_roots(_context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/alice", name="home")])

    async def progress(done: float, total: float | None, _message: str | None) -> None:
        seen["progress"].append([done, total])

    with stderr_to(values.get("stderr", "inherit")) as errlog:
        async with Client(
            transport(values, errlog),
            mode="legacy",
            sampling_callback=sample,
            elicitation_callback=elicit,
            list_roots_callback=list_roots,
        ) as client:
            seen["version"] = client.protocol_version
            seen["tools"] = sorted(tool.name for tool in (await client.list_tools()).tools)
            seen["echo"] = text_of(await client.call_tool("echo", {"message": "hello"}))
            job = {"duration": 0.3, "steps": 3}
            await client.call_tool(
                "trigger-long-running-operation", job, progress_callback=progress
            )
            question = {"prompt": "say something", "maxTokens": 10}
            seen["sample"] = text_of(await client.call_tool("trigger-sampling-request", question))
            await client.call_tool("trigger-elicitation-request", {})
            seen["roots"] = text_of(await client.call_tool("get-roots-list", {}))
    return seen


async def stateless_tour(values: dict[str, Any]) -> dict[str, Any]:
    """Use the era without a handshake, with mcp-server-time."""
    from mcp import Client

    async with Client(transport(values, sys.stderr), mode="2026-07-28") as client:
        noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        return {
            "version": client.protocol_version,
            "tools": sorted(tool.name for tool in (await client.list_tools()).tools),
            "noon": text_of(await client.call_tool("convert_time", noon)),
        }


async def refused_tour(values: dict[str, Any]) -> str:
    """Open a session that is refused; return the error that the client raises."""
    from mcp import Client

    try:
        async with Client(transport(values, sys.stderr), mode=values["mode"]) as client:
            await client.list_tools()
    except Exception as error:  # noqa: BLE001 - whatever the client makes of it; first of a group
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        return f"{type(error).__name__}: {error}"
    return "it was let in"


async def http_tour(values: dict[str, Any]) -> dict[str, Any]:
    """Call a tool that reports its progress, over HTTP."""
    from mcp import Client

    seen: dict[str, Any] = {"progress": []}

    async def progress(done: float, _total: float | None, _message: str | None) -> None:
        seen["progress"].append(done)

    async with Client(values["url"], mode=values["mode"]) as client:
        seen["version"] = client.protocol_version
        given = values.get("given", {})
        called = await client.call_tool(values["tool"], given, progress_callback=progress)
        seen["text"] = text_of(called)
    return seen


async def window_tour(values: dict[str, Any]) -> dict[str, Any]:
    """Call a tool that the user may approve in the agent's own window, and follow the text."""
    import anyio
    import mcp_types as types
    from mcp import Client

    asked: list[str] = []

    async def elicit(_context: Any, params: Any) -> Any:
        field = params.requested_schema["properties"]["approve"]
        asked.append(f"{params.message}\n{field['description']}")
        await anyio.sleep(values.get("reads_for_s", 1.0))  # a person reads the question first
        content = {"approve": True} if values["action"] == "accept" else None
        return types.ElicitResult(action=values["action"], content=content)

    from_here = transport(values, sys.stderr)
    about = types.Implementation(name=values.get("client", "window"), version="1.0")
    how = {"mode": values["mode"], "elicitation_callback": elicit, "client_info": about}
    async with Client(from_here, **how) as client:
        answer = text_of(await client.call_tool(values["tool"], values["given"]))
    return {"asked": asked, "answer": answer}


async def held_tour(values: dict[str, Any]) -> dict[str, Any]:
    """Call a tool that needs an approval, and other tools meanwhile; retry it if told to."""
    import anyio
    from mcp import Client

    answers: list[str] = []
    words: list[str] = []

    async def note(_done: float, _total: float | None, message: str | None) -> None:
        words.append(message or "")

    how = {"mode": values.get("mode", "auto"), "read_timeout_seconds": values.get("patience_s")}
    async with Client(transport(values, sys.stderr), **how) as client:

        async def ask() -> None:
            tool, given = values["tool"], values["given"]
            answers.append(text_of(await client.call_tool(tool, given, progress_callback=note)))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            for _ in range(values["others"]):
                await client.call_tool(values["other"], values["other_given"])
            early = list(answers)
            if "last" in values:  # the sign that the other calls are done
                await client.call_tool(values["last"], values["last_given"])
        for _ in range(values.get("again", 0)):
            await ask()
    return {"early": early, "answers": answers, "words": words}


async def change_tour(values: dict[str, Any]) -> dict[str, Any]:
    """List the tools and call one; then again when the server has told that the list changed."""
    import time
    from contextlib import AsyncExitStack

    import anyio
    from mcp import Client

    changed = anyio.Event()
    looks: list[Any] = []

    async def hear(message: Any) -> None:
        if "ToolListChanged" in type(getattr(message, "root", message)).__name__:
            changed.set()

    mode = values["mode"]
    async with Client(transport(values, sys.stderr), mode=mode, message_handler=hear) as client:

        async def look() -> None:
            page = await client.list_tools()
            names = [tool.name for tool in page.tools]
            while page.next_cursor:
                page = await client.list_tools(cursor=page.next_cursor)
                names += [tool.name for tool in page.tools]
            looks.append([names, text_of(await client.call_tool(values["tool"], {}))])

        async with AsyncExitStack() as stack:
            await_change = changed.wait
            if mode != "legacy":
                events = await stack.enter_async_context(client.listen(tools_list_changed=True))
                await_change = aiter(events).__anext__
            await look()
            await anyio.Path(values["sign"]).touch()
            await await_change()
            told_at = time.time()
            await look()
    return {"looks": looks, "told_at": told_at}
