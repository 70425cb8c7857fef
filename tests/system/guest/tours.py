"""Answers of real servers to the official client, value by value. Runs in a machine.

Its arguments: the bound of each tour in seconds, a JSON object of commands by server, and the names
of tours. Prints a JSON object: of each tour the steps with what came of them, and apart from them,
as they come when they like, what the server asked and told.
"""

import base64
import json
import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

WORK = "/home/alice/work"
LONG = "trigger-long-running-operation"
# Random values: times, drawn names, and commits, which have a time in them.
RANDOM = [
    (re.compile(r"created at [0-9:]+( [AP]M)?"), "created at TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:?\d\d|Z)?"), "TIME"),
    (
        re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]* [A-Z][a-z]{2} \d.{1,40}?20\d\d( \S+)?"),
        "TIME",
    ),
    (re.compile(r'"day_of_week": "\w+"'), "DAY"),
    (re.compile(r"^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day$"), "DAY"),
    (re.compile(r"\b([0-9a-f]{40}|[0-9a-f]{7})\b"), "COMMIT"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "TASK"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    # Progress of a task: a second each.
    (re.compile(r"(Gathering|Analyzing|Synthesizing|Generating) [a-z]+\.\.\."), "STAGE"),
]
DRAWN = re.compile(r"level[- ]message")  # one of eight, drawn by the server every five seconds


def settled(value: Any) -> Any:
    """Return a value without its random parts."""
    if isinstance(value, dict):
        return {key: settled(_as_text(key, inner)) for key, inner in value.items()}
    if isinstance(value, list):
        return [settled(inner) for inner in value]
    if isinstance(value, str):
        for pattern, word in RANDOM:
            value = pattern.sub(word, value)
    return value


def _as_text(key: str, value: Any) -> Any:
    if key != "blob" or not isinstance(value, str):
        return value
    text = base64.b64decode(value).decode(errors="replace")
    return text if "created at" in text else value


def dumped(value: Any) -> Any:
    """Return a result, a notification or a callback's params, as JSON has it."""
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {value}"
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return value


class Tour:
    """One session, and the record of its steps."""

    def __init__(self) -> None:
        self.client: Any = None
        self.steps: list[Any] = []
        self.asked: list[Any] = []
        self.told: list[Any] = []
        self._has_news: Any = None  # an event, during a wait for it

    async def step(self, name: str, answer: Awaitable[Any]) -> Any:
        """Record the outcome of one call, also an error; return it."""
        from mcp import MCPError

        try:
            result = await answer
        except MCPError as error:
            self.steps.append([name, {"error": [error.code, error.message, error.data]}])
            return None
        self.steps.append([name, dumped(result)])
        return result

    async def tool(self, name: str, /, **arguments: Any) -> None:
        """Call a tool, and record its progress too."""
        progress: list[Any] = []

        async def note(done: float, total: float | None, message: str | None) -> None:
            progress.append([done, total, message])

        call = self.client.call_tool(name, arguments, progress_callback=note)
        await self.step(f"{name} {json.dumps(arguments)}", call)
        self.steps.append([f"progress of {name}", progress])

    async def tools(self, calls: dict[str, Any]) -> None:
        """Call tools, each once or with each of some arguments."""
        for name, arguments in calls.items():
            for each in arguments if isinstance(arguments, list) else [arguments]:
                await self.tool(name, **each)

    async def raw(self, method: str, /, **params: Any) -> Any:
        """Send a request without a function in the client, which would not accept its result."""
        ask = self.client.session._dispatcher.send_raw_request
        return await self.step(method, ask(method, params))

    async def hear(self, message: Any) -> None:
        """Record a notification of the server."""
        self.told.append(dumped(message))
        if self._has_news:
            self._has_news.set()

    async def until_told(self, wanted: str) -> None:
        """Wait for a notification."""
        import anyio

        while wanted not in str(self.told):
            self._has_news = anyio.Event()
            await self._has_news.wait()

    async def lists(self) -> None:
        """List everything that the server has."""
        for what in ("tools", "prompts", "resources", "resource_templates"):
            ask = getattr(self.client, f"list_{what}")
            await self.step(what, ask())
            await self.step(f"{what}, another page", ask(cursor="elsewhere"))


async def everything(tour: Tour) -> None:
    """Use every feature of server-everything."""
    import anyio
    import mcp_types as types

    client = tour.client
    await tour.until_told("Roots updated")
    await tour.lists()
    await tour.step("ping", client.send_ping())
    await tour.step("level", client.set_logging_level("debug"))
    await tour.tools(
        {
            "echo": [{"message": "hello"}, {"message": "grüße \N{GRINNING FACE}\0\n"}, {}],
            "get-sum": [{"a": 2, "b": 3}, {"a": 0.1, "b": 0.2}, {"a": 2**53, "b": 1}, {"a": "x"}],
            "get-annotated-message": [
                {"messageType": kind, "includeImage": True}
                for kind in ("error", "success", "debug")
            ],
            "get-resource-links": [{"count": 10}, {"count": 11}],
            "get-resource-reference": [
                {"resourceType": kind, "resourceId": 3} for kind in ("Text", "Blob", "None")
            ],
            "get-roots-list": {},
            "get-structured-content": [{"location": "Chicago"}, {"location": "Nowhere"}],
            "get-tiny-image": {},
            "gzip-file-as-resource": [
                {"name": "a.gz", "data": "data:text/plain,hello", "outputType": kind}
                for kind in ("resource", "resourceLink")
            ],
            LONG: {"duration": 0.1, "steps": 5},
            "trigger-sampling-request": {"prompt": "say something", "maxTokens": 10},
            "trigger-elicitation-request": {},
            "trigger-url-elicitation": [
                {"url": "https://good.test/", "elicitationId": "one", "errorPath": path}
                for path in (False, True)
            ],
            "toggle-simulated-logging": [{}, {}],
            "no-such-tool": {},
        }
    )
    await tour.step("the roots changed", client.send_roots_list_changed())
    with anyio.move_on_after(0.2):  # which cancels it in the server
        await client.call_tool(LONG, {"duration": 60, "steps": 1})
    late = client.call_tool(LONG, {"duration": 60, "steps": 1}, read_timeout_seconds=0.1)
    await tour.step("a call that takes too long", late)
    for name, arguments in (
        ("simple-prompt", None),
        ("args-prompt", {"city": "Paris", "state": "Texas"}),
        ("completable-prompt", {"department": "Sales", "name": "Eve"}),
        ("resource-prompt", {"resourceType": "Blob", "resourceId": "7"}),
        ("args-prompt", None),
        ("no-such-prompt", None),
    ):
        await tour.step(f"{name} {arguments}", client.get_prompt(name, arguments))
    uris = [f"demo://resource/dynamic/{kind}/1" for kind in ("text", "blob", "none")]
    for uri in (
        *uris,
        "demo://resource/static/document/features.md",
        "demo://resource/session/a.gz",
    ):
        await tour.step(uri, client.read_resource(uri))
    prompt = types.PromptReference(type="ref/prompt", name="completable-prompt")
    template = types.ResourceTemplateReference(
        type="ref/resource", uri="demo://resource/dynamic/text/{resourceId}"
    )
    for reference, name, value in (
        (prompt, "department", "S"), (prompt, "name", ""), (template, "resourceId", "4"),
    ):  # fmt: skip
        argument = {"name": name, "value": value}
        context = {"department": "Sales"}
        await tour.step(f"complete {name}", client.complete(reference, argument, context))
    await tour.step("subscribe", client.subscribe_resource(uris[0]))
    await tour.tool("toggle-subscriber-updates")
    await tour.until_told("resources/updated")
    await tour.tool("toggle-subscriber-updates")
    await tour.step("unsubscribe", client.unsubscribe_resource(uris[0]))
    await tasks(tour)


async def tasks(tour: Tour) -> None:
    """Run a task in server-everything, and cancel it."""
    call = {"name": "simulate-research-query", "arguments": {"topic": "gates"}}
    made = await tour.raw("tools/call", **call, task={"ttl": 60_000})
    task = {"taskId": made["task"]["taskId"]}
    for method in ("tasks/get", "tasks/cancel", "tasks/get", "tasks/result"):
        await tour.raw(method, **task)
    await tour.raw("tasks/list")


async def memory(tour: Tour) -> None:
    """Make a graph, read it, and leave none."""
    one = {"name": "one", "entityType": "number", "observations": ["odd", "größer \N{SNOWMAN}"]}
    two = {"name": "two", "entityType": "number", "observations": []}
    link = {"from": "one", "to": "two", "relationType": "before"}
    await tour.lists()
    await tour.tools(
        {
            "create_entities": {"entities": [one, two]},
            "create_relations": {"relations": [link]},
            "add_observations": {"observations": [{"entityName": "two", "contents": ["even"]}]},
            "search_nodes": {"query": "even"},
            "open_nodes": {"names": ["one"]},
            "read_graph": {},
            "delete_observations": {"deletions": [{"entityName": "one", "observations": ["odd"]}]},
            "delete_relations": {"relations": [link]},
            "delete_entities": [{"entityNames": ["one", "two"]}, {"entityNames": "one"}],
        }
    )
    await tour.tool("read_graph")


async def filesystem(tour: Tour) -> None:
    """Read, write and move files, inside the client's roots and outside them."""
    top = f"{WORK}/files"
    a = f"{top}/a.txt"
    await tour.lists()
    await tour.tools(
        {
            "list_allowed_directories": {},
            "write_file": [{"path": a, "content": "one\ntwo\nthree\n"}, {"path": "/x"}],
            "read_text_file": [{"path": a}, {"path": a, "head": 1}, {"path": "/etc/passwd"}],
            "read_file": {"path": f"{top}/given.txt"},
            "read_media_file": {"path": f"{top}/given.png"},
            "edit_file": {"path": a, "edits": [{"oldText": "two", "newText": "2"}]},
            "read_multiple_files": {"paths": [a, f"{top}/none", f"{top}/given.txt"]},
            "create_directory": {"path": f"{top}/sub/dir"},
            "move_file": {"source": a, "destination": f"{top}/sub/b.txt"},
            "list_directory": {"path": top},
            "list_directory_with_sizes": {"path": top, "sortBy": "size"},
            "directory_tree": {"path": top},
            "search_files": {"path": top, "pattern": "**/*.txt"},
            "get_file_info": {"path": f"{top}/given.txt"},
        }
    )


async def sqlite(tour: Tour) -> None:
    """Fill a table, query it, and drop it."""
    await tour.lists()
    await tour.tools(
        {
            "create_table": {"query": "CREATE TABLE t (a INTEGER, b TEXT)"},
            "write_query": [
                {"query": "INSERT INTO t VALUES (1, 'x'), (9223372036854775807, 'größer')"},
                {"query": "SELECT 1"},
            ],
            "read_query": [{"query": "SELECT * FROM t LIMIT 9"}, {"query": "DROP TABLE t"}],
            "list_tables": {},
            "describe_table": {"table_name": "t"},
            "append_insight": {"insight": "t has two rows"},
        }
    )
    await tour.step("memo", tour.client.read_resource("memo://insights"))
    await tour.step("prompt", tour.client.get_prompt("mcp-demo", {"topic": "numbers"}))
    await tour.tool("write_query", query="DROP TABLE t")


async def echo(tour: Tour) -> None:
    """Receive an echo, after the request for roots that the server sends in its own time."""
    await tour.until_told("Roots updated")
    await tour.tool("echo", message="hello")


async def time(tour: Tour) -> None:
    """Query the time, here and there."""
    noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    await tour.lists()
    await tour.tools(
        {
            "convert_time": [noon, {**noon, "time": "25:00"}, {"time": "12:00"}],
            "get_current_time": [{"timezone": "UTC"}, {"timezone": "Nowhere/None"}],
        }
    )


async def git(tour: Tour, repository: str) -> None:
    """Change a repository, commit, and read it."""
    repo = {"repo_path": f"{WORK}/{repository}"}
    await tour.lists()
    await tour.tools(
        {
            "git_status": repo,
            "git_diff_unstaged": repo,
            "git_add": {**repo, "files": ["a.txt"]},
            "git_diff_staged": repo,
            "git_commit": {**repo, "message": "grüße"},
            "git_log": [{**repo, "max_count": 5}, {"repo_path": "/nowhere"}],
            "git_create_branch": {**repo, "branch_name": "side"},
            "git_checkout": {**repo, "branch_name": "side"},
            "git_diff": [{**repo, "target": "HEAD~1"}, {**repo, "target": "--output=/tmp/x"}],
            "git_show": {**repo, "revision": "HEAD"},
            "git_branch": {**repo, "branch_type": "local"},
            "git_reset": repo,
        }
    )


# Each with its server and the era that its client requests.
TOURS: dict[str, tuple[str, str, Callable[[Tour], Awaitable[None]]]] = {
    "everything": ("everything", "legacy", everything),
    "memory": ("memory", "legacy", memory),
    "filesystem": ("filesystem", "legacy", filesystem),
    "sqlite": ("sqlite", "legacy", sqlite),
    "everything-auto": ("everything", "auto", echo),
    "time-legacy": ("time", "legacy", time),
    "time-auto": ("time", "auto", time),
    "time-modern": ("time", "2026-07-28", time),
    "git-legacy": ("git", "legacy", partial(git, repository="git-legacy")),
    "git-modern": ("git", "2026-07-28", partial(git, repository="git-modern")),
}


async def make(name: str, command: list[str], env: dict[str, str]) -> Any:
    """Make one tour."""
    import mcp_types as types
    from mcp import Client, StdioServerParameters

    tour = Tour()

    async def sample(_context: Any, params: Any) -> Any:
        tour.asked.append(dumped(params))
        text = types.TextContent(type="text", text="a sample")
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def elicit(_context: Any, params: Any) -> Any:
        tour.asked.append(dumped(params))
        content = {"name": "Alice", "check": True, "integer": 7} if params.mode == "form" else None
        return types.ElicitResult(action="accept", content=content)

    async def list_roots(_context: Any) -> Any:
        tour.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri=f"file://{WORK}/files", name="files")])

    _, mode, travel = TOURS[name]
    server = StdioServerParameters(command=command[0], args=command[1:], env=env)
    async with Client(
        server,
        mode=mode,  # type: ignore[arg-type, unused-ignore]
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=list_roots,
        message_handler=tour.hear,
    ) as client:
        tour.client = client
        about = [client.protocol_version, client.server_info, client.server_capabilities]
        tour.steps.append(["about", [*map(dumped, about), client.instructions]])
        await travel(tour)
    told = [message for message in tour.told if not DRAWN.search(str(message))]
    return settled({"steps": tour.steps, "asked": tour.asked, "told": told})


async def main(within_s: float, servers: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Make these tours, all at once."""
    import anyio

    made: dict[str, Any] = {}

    async def make_one(name: str) -> None:
        with anyio.fail_after(within_s):
            made[name] = await make(name, **servers[TOURS[name][0]])

    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(make_one, name)
    return made


if __name__ == "__main__":
    import anyio

    bound, given, *wanted = sys.argv[1:]
    all_of = wanted or list(TOURS)
    print(json.dumps(anyio.run(main, float(bound), json.loads(given), all_of)))
