"""Forms of real clients, as docs/design/run.md lists them; mcpwrap is not part of these stories."""

import json
from typing import Any

import pytest

from tests.system.bed.machine import BED_AT, Machine
from tests.system.guest.model_api import FINAL
from tests.system.support import coding_agents
from tests.system.support.coding_agents import CLAUDE_CODE, CODEX, OPENCODE, CodingAgent, Entry
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap import machines

STAGE = machines.with_agents
pytestmark = [
    on_release("trixie"),
    only_in_test_all("facts of the clients, by which mcpwrap was built; no code of it runs"),
]

LOG = "/home/alice/asking.jsonl"
SERVER = Entry("asking", ["/usr/bin/python3", f"{BED_AT}/tests/system/guest/asking_server.py", LOG])
NO_PERSON_MS = 250  # an answer before this time is no person's
FORMS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
LINES = "\n".join(f"line-{number}" for number in range(1, 13))
DECLINES: dict[str, Any] = {"action": "decline"}
CANCELS: dict[str, Any] = {"action": "cancel"}
NO_METHOD = {"code": -32601, "message": "Method not found"}


@pytest.fixture
def clients(machine: Machine) -> Machine:
    """Lend a machine on which alice has no file of an agent yet."""
    return machines.anew(machine)


def log(machine: Machine) -> list[dict[str, Any]]:
    """Return what the server noted."""
    return [json.loads(line) for line in machine.read(LOG).splitlines()]


def answer(machine: Machine) -> tuple[Any, int]:
    """Return the client's answer to the form, and the milliseconds until it came."""
    noted = log(machine)
    (asked,) = (one for one in noted if "asked" in one)
    (got,) = (one for one in noted if one.get("got", {}).get("id") == asked["asked"])
    return got["got"].get("result", got["got"].get("error")), got["ms"] - asked["ms"]


def declared(machine: Machine) -> tuple[str, dict[str, Any]]:
    """Return the client's name, and its capabilities for forms."""
    (params,) = (
        one["got"]["params"]
        for one in log(machine)
        if one.get("got", {}).get("method") == "initialize"
    )
    capabilities = params["capabilities"]
    forms = {key: capabilities[key] for key in FORMS if key in capabilities}
    return params["clientInfo"]["name"], forms


@pytest.mark.parametrize(
    ("agent", "name", "forms", "answers"),
    [
        (CLAUDE_CODE, "claude-code", FORMS, CANCELS),
        (CODEX, "codex-mcp-client", FORMS, DECLINES),
        (OPENCODE, "opencode", {}, NO_METHOD),  # nor does its terminal declare it
    ],
    ids=lambda value: value.name if isinstance(value, CodingAgent) else "",
)
def test_without_a_terminal_a_client_answers_by_itself(
    clients: Machine, agent: CodingAgent, name: str, forms: dict[str, Any], answers: dict[str, Any]
) -> None:
    agent.set_up(clients, SERVER)
    with coding_agents.model(clients, [("ask", {})]) as told:
        said = coding_agents.answered(clients, agent)
    assert FINAL in said
    assert declared(clients) == (name, forms)
    found, after_ms = answer(clients)
    assert found == answers
    assert after_ms < NO_PERSON_MS or agent is OPENCODE
    assert [json.loads(result.rpartition("Output: ")[2]) for result in told.results()] == [answers]


def open_form(machine: Machine, agent: CodingAgent, how: dict[str, Any]) -> Any:
    """Open the agent at a terminal, with a model that has the form shown."""
    agent.set_up(machine, SERVER)
    return coding_agents.model(machine, [("ask", how)])


@pytest.mark.parametrize("agent", [CLAUDE_CODE, CODEX], ids=str)
def test_at_a_terminal_a_person_answers(clients: Machine, agent: CodingAgent) -> None:
    def form(answers: Any) -> Any:
        with open_form(clients, agent, {}), coding_agents.opened(clients, agent) as screen:
            screen.until("Let this one call through.")
            answers(screen)
            screen.until(FINAL)
        return answer(clients)[0]

    assert form(agent.approve) == {"action": "accept", "content": {"approve": True}}
    clients.as_root(f"rm {LOG}")
    no = {"action": "accept", "content": {"approve": False}} if agent is CODEX else DECLINES
    assert form(agent.decline) == no
    clients.as_root(f"rm {LOG}")
    assert form(lambda screen: screen.press("Escape")) == CANCELS


@pytest.mark.parametrize("agent", [CLAUDE_CODE, CODEX], ids=str)
def test_a_form_that_the_server_cancels_is_closed(clients: Machine, agent: CodingAgent) -> None:
    with (
        open_form(clients, agent, {"cancel_after_s": 4}),
        coding_agents.opened(clients, agent) as screen,
    ):
        screen.until("Let this one call through.")
        shown = screen.until(FINAL, agent.idle)
    assert "Let this one call through." not in shown
    assert "cancelled" in shown


def described(text: str) -> dict[str, Any]:
    """Return the params of a form whose one field has this description."""
    field = {"type": "boolean", "title": "Approve", "description": text, "default": False}
    form = {"type": "object", "properties": {"approve": field}, "required": ["approve"]}
    return {"params": {"message": "The message.", "requestedSchema": form}}


@pytest.mark.parametrize(
    ("agent", "how", "last"),
    [
        # Claude Code: three lines of the message, all of a description
        (CLAUDE_CODE, {"params": {"message": LINES}}, "line-3"),
        (CLAUDE_CODE, described(LINES), "line-12"),
        (CODEX, {"params": {"message": LINES}}, "line-12"),
        (CODEX, described(LINES), "line-12"),
    ],
)
def test_how_much_of_a_text_a_form_shows(
    clients: Machine, agent: CodingAgent, how: dict[str, Any], last: str
) -> None:
    with open_form(clients, agent, how), coding_agents.opened(clients, agent) as screen:
        shown = screen.until("line-1", agent.approving[0][0])
    assert [word for word in shown.split() if word.startswith("line-")][-1] == last


def test_codex_cuts_a_form_higher_than_its_screen_without_saying_so(clients: Machine) -> None:
    high = {"params": {"message": "\n".join(f"line-{number}" for number in range(1, 61))}}
    with open_form(clients, CODEX, high), coding_agents.opened(clients, CODEX) as screen:
        shown = screen.until("line-1", "2. False")
    assert "line-30" in shown
    assert "line-60" not in shown
    assert "more" not in shown
