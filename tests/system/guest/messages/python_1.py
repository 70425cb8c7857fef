"""Player of the conversations with the official Python client 1.x: the handshake era.

Its arguments: a JSON object of the servers' commands by client, and the JSON file of conversations.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client

CLIENT = "python-1"
Json = dict[str, Any]
ELICITED = ["accept", "decline", "cancel"]


async def sample(_context: Any, _params: Any) -> Any:
    text = types.TextContent(type="text", text="Un mot, «deux» mots.")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def list_roots(_context: Any) -> Any:
    return types.ListRootsResult(roots=[types.Root(uri="file:///home/alice/data/files")])


async def ignore(*_: Any) -> None:
    """Receive a notification."""


def elicit_in_turn() -> Any:
    """Return a callback that accepts, declines and cancels, one after the other."""
    asked: list[Any] = []

    async def elicit(_context: Any, params: Any) -> Any:
        asked.append(params)
        action = ELICITED[(len(asked) - 1) % 3]
        content = {"name": "Noël", "check": False, "integer": 0, "number": 2.5, "color": None}
        return types.ElicitResult(action=action, content=content if action == "accept" else None)

    return elicit


async def lists(session: Any) -> None:
    for what in ("tools", "prompts", "resources", "resource_templates"):
        with suppress(McpError):
            await getattr(session, f"list_{what}")()


async def progress(session: Any, name: str, arguments: Json) -> None:
    await session.call_tool(name, arguments, progress_callback=ignore)


async def complete(session: Any, ref: Json, argument: Json, context: Json | None) -> None:
    kind = types.PromptReference if "name" in ref else types.ResourceTemplateReference
    await session.complete(kind(**ref), argument, context)


async def task(session: Any, name: str, arguments: Json) -> None:
    """Let the server do it in a task, and cancel that."""
    tasks = session.experimental
    made = await tasks.call_tool_as_task(name, arguments, ttl=60_000)
    await tasks.get_task(made.task.taskId)
    await tasks.list_tasks()
    await tasks.cancel_task(made.task.taskId)
    await tasks.get_task_result(made.task.taskId, types.CallToolResult)


PLAY: dict[str, Callable[..., Awaitable[Any]]] = {
    "lists": lists,
    "ping": ClientSession.send_ping,
    "level": ClientSession.set_logging_level,
    "tool": ClientSession.call_tool,
    "progress": progress,
    "task": task,
    "prompt": ClientSession.get_prompt,
    "resource": ClientSession.read_resource,
    "complete": complete,
    "subscribe": ClientSession.subscribe_resource,
    "unsubscribe": ClientSession.unsubscribe_resource,
    "roots changed": ClientSession.send_roots_list_changed,
}


async def converse(command: list[str], steps: list[list[Any]]) -> None:
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with (
        stdio_client(server) as (read, write),
        ClientSession(
            read,
            write,
            sampling_callback=sample,
            elicitation_callback=elicit_in_turn(),
            list_roots_callback=list_roots,
            message_handler=ignore,
        ) as session,
    ):
        await session.initialize()
        for verb, *values in steps:
            if verb in PLAY:
                with suppress(McpError):
                    await PLAY[verb](session, *values)


def main(commands: dict[str, dict[str, list[str]]], conversations: list[dict[str, Any]]) -> None:
    for each in conversations:
        if CLIENT in each["clients"]:
            anyio.run(converse, commands[CLIENT][each["server"]], each["steps"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
