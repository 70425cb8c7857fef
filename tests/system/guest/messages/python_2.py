"""Player of the conversations with the official Python client 2.x: both eras.

Its arguments: a JSON object of the servers' commands by client, and the JSON file of conversations.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

Json = dict[str, Any]
ELICITED = ["accept", "decline", "cancel"]
CLIENT = "python-2"


async def sample(_context: Any, _params: Any) -> Any:
    text = types.TextContent(type="text", text="Ein Satz.\nUnd noch einer: 🐈")
    return types.CreateMessageResult(
        role="assistant", content=text, model="none", stop_reason="endTurn"
    )


async def list_roots(_context: Any) -> Any:
    roots = [
        ("file:///home/alice/data/files", "files"),
        ("file:///home/alice/%C3%BCber%20uns", None),
    ]
    return types.ListRootsResult(roots=[types.Root(uri=uri, name=name) for uri, name in roots])


async def ignore(*_: Any) -> None:
    """Receive a notification."""


def elicit_in_turn() -> Any:
    """Return a callback that accepts, declines and cancels, one after the other."""
    asked: list[Any] = []

    async def elicit(_context: Any, params: Any) -> Any:
        asked.append(params)
        action = ELICITED[(len(asked) - 1) % 3]
        content = {"name": "Zoë", "check": True, "integer": 7, "number": -1.5}
        return types.ElicitResult(action=action, content=content if action == "accept" else None)

    return elicit


async def lists(client: Any) -> None:
    for what in ("tools", "prompts", "resources", "resource_templates"):
        with suppress(MCPError):
            await getattr(client, f"list_{what}")()


async def progress(client: Any, name: str, arguments: Json) -> None:
    await client.call_tool(name, arguments, progress_callback=ignore)


async def complete(client: Any, ref: Json, argument: Json, context: Json | None) -> None:
    kind = types.PromptReference if "name" in ref else types.ResourceTemplateReference
    await client.complete(kind(**ref), argument, context)


async def cancel(client: Any, name: str, arguments: Json) -> None:
    with anyio.move_on_after(0.1):
        await client.call_tool(name, arguments)


async def listen(client: Any, name: str) -> None:
    """Subscribe to changes of the tools, and make the server report one."""
    async with client.listen(tools_list_changed=True) as events:
        await client.call_tool(name, {})
        await anext(aiter(events))


PLAY: dict[str, Callable[..., Awaitable[Any]]] = {
    "lists": lists,
    "ping": Client.send_ping,
    "level": Client.set_logging_level,
    "tool": Client.call_tool,
    "progress": progress,
    "cancel": cancel,
    "listen": listen,
    "prompt": Client.get_prompt,
    "resource": Client.read_resource,
    "complete": complete,
    "subscribe": Client.subscribe_resource,
    "unsubscribe": Client.unsubscribe_resource,
    "roots changed": Client.send_roots_list_changed,
}


async def converse(command: list[str], mode: Any, steps: list[list[Any]]) -> None:
    async with Client(
        StdioServerParameters(command=command[0], args=command[1:]),
        mode=mode,
        sampling_callback=sample,
        elicitation_callback=elicit_in_turn(),
        list_roots_callback=list_roots,
        message_handler=ignore,
        client_info=types.Implementation(name="notes", title="Notes 📓", version="2.0.1"),
    ) as client:
        for verb, *values in steps:
            if verb in PLAY:
                with suppress(MCPError):
                    await PLAY[verb](client, *values)


def main(commands: dict[str, dict[str, list[str]]], conversations: list[dict[str, Any]]) -> None:
    for each in conversations:
        if CLIENT in each["clients"]:
            anyio.run(converse, commands[CLIENT][each["server"]], each["mode"], each["steps"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
