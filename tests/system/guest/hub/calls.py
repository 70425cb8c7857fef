"""Everything that a server offers, used once by the official Python client. Runs inside.

Its argument is a JSON object: `command`, `mode`, the `prefix` of names at a hub, a part of all
`uris` that are used, and by tool the `calls`. Prints a JSON object: the definitions, and the
outcome of each step, without the prefix.
"""

import json
import sys
from collections.abc import Awaitable
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

from tests.system.guest.tours import dumped

Json = dict[str, Any]
LISTS = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resource_templates": "uri_template",
}


async def sample(_context: Any, _params: Any) -> Any:
    content = types.TextContent(type="text", text="a sample")
    return types.CreateMessageResult(role="assistant", content=content, model="none")


async def elicit(_context: Any, params: Any) -> Any:
    content = {"name": "Alice", "check": True, "integer": 7} if params.mode == "form" else None
    return types.ElicitResult(action="accept", content=content)


async def list_roots(_context: Any) -> Any:
    return types.ListRootsResult(roots=[types.Root(uri="file:///home/alice/files", name="files")])


class Calls:
    """Session with one server, directly or by a hub."""

    def __init__(self, client: Any, prefix: str, uris: str) -> None:
        self._client = client
        self._prefix = prefix
        self._uris = uris
        self.lists: dict[str, Json] = {}
        self.outcomes: Json = {}

    async def read_lists(self) -> None:
        """Read all pages of each list; of a hub's, keep the entries of this member."""
        for what, key in LISTS.items():
            entries: list[Any] = []
            cursor = None
            try:
                while True:
                    page = await getattr(self._client, f"list_{what}")(cursor=cursor)
                    entries += getattr(page, what)
                    cursor = page.next_cursor
                    if not cursor:
                        break
            except MCPError:
                continue  # the server has none of these
            own = [dumped(entry) for entry in entries if self._is_own(getattr(entry, key), key)]
            self.lists[what] = {self._own_name(each): self._without(each) for each in own}

    def _is_own(self, name: str, key: str) -> bool:
        return name.startswith(self._prefix) if key == "name" else self._uris in name

    def _own_name(self, entry: Json) -> str:
        name: str = entry.get("uri") or entry.get("uriTemplate") or entry["name"]
        return name.removeprefix(self._prefix)

    def _without(self, entry: Json) -> Json:
        return {**entry, "name": entry["name"].removeprefix(self._prefix)}

    async def step(self, name: str, outcome: Awaitable[Any]) -> None:
        """Note the outcome of a step, also an error."""
        try:
            self.outcomes[name] = dumped(await outcome)
        except MCPError as error:
            self.outcomes[name] = {"error": [error.code, error.message, error.data]}
        except RuntimeError as error:  # of the client, which checks results by `outputSchema`
            self.outcomes[name] = {"error": str(error).replace(self._prefix, "")}

    async def call_tools(self, calls: dict[str, list[Json]]) -> None:
        """Call each tool with each of its arguments."""
        for tool, all_arguments in calls.items():
            for arguments in all_arguments:
                progress: list[Any] = []

                async def note(
                    done: float, total: Any, message: Any, into: list[Any] = progress
                ) -> None:
                    into.append([done, total, message])

                name = f"{tool} {json.dumps(arguments)}"
                call = self._client.call_tool(
                    self._prefix + tool, arguments, progress_callback=note
                )
                await self.step(name, call)
                self.outcomes[f"progress of {name}"] = progress

    async def use_the_rest(self) -> None:
        """Get all prompts, and read all resources."""
        for prompt, entry in self.lists.get("prompts", {}).items():
            given = {each["name"]: "1" for each in entry.get("arguments") or []}
            await self.step(prompt, self._client.get_prompt(self._prefix + prompt, given))
            if given:
                reference = types.PromptReference(type="ref/prompt", name=self._prefix + prompt)
                argument = {"name": next(iter(given)), "value": "1"}
                await self.step(f"complete {prompt}", self._client.complete(reference, argument))
        for uri in self.lists.get("resources", {}):
            await self.step(uri, self._client.read_resource(uri))


async def main(given: Json) -> Json:
    """Use one server; return what came of it."""
    program, *args = given["command"]
    async with Client(
        StdioServerParameters(command=program, args=args),
        mode=given["mode"],
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=list_roots,
    ) as client:
        session = Calls(client, given["prefix"], given["uris"])
        await session.read_lists()
        await session.call_tools(given["calls"])
        await session.read_lists()  # a server may add tools when it knows what the agent can do
        await session.use_the_rest()
    return {"lists": session.lists, "outcomes": session.outcomes}


if __name__ == "__main__":
    print(json.dumps(anyio.run(main, json.loads(sys.argv[1]))))
