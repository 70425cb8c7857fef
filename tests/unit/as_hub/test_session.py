"""Session of a hub with a scripted agent, supervisor, gate and members."""

import os
import signal

from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.hub import hub_channel
from tests.shared import pace
from tests.unit.as_hub.world import HubProgram, called_hub, hub_of, known


def names_of(hub: HubProgram, request_id: int) -> list[str]:
    hub.asks(id=request_id, method="tools/list")
    answer = hub.hears()
    assert answer is not None
    return [tool["name"] for tool in answer["result"]["tools"]]


def test_what_is_known_is_listed_without_a_member() -> None:
    with hub_of("git", "time", known=[known("git", "log"), known("time", "now")]) as hub:
        assert hub.begins()["serverInfo"]["name"] == "tools"
        assert names_of(hub, 1) == ["git__log", "mcpwrap_status", "time__now"]
        assert hub.packet() == hub_channel.JournalLine("Loaded 2 tools from 2/2 servers")


def test_a_call_waits_for_its_member_alone() -> None:
    with hub_of("git", "time", known=[known("git", "log"), known("time", "now")]) as hub:
        hub.begins()
        hub.calls("git__log", 1)
        hub.calls("time__now", 2)
        git, time = hub.opens(), hub.opens()
        time.serves("now")
        assert time.answers("tools/call", content=[])["name"] == "now"
        answer = hub.hears()
        assert answer == {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}
        git.serves("log")
        git.answers("tools/call", content=[1])
        answer = hub.hears()
        assert answer == {"jsonrpc": "2.0", "id": 1, "result": {"content": [1]}}


def test_members_of_which_nothing_is_known_are_started_side_by_side() -> None:
    with hub_of("git", "time") as hub:
        hub.begins()
        hub.asks(id=1, method="tools/list")
        git, time = hub.opens(), hub.opens()
        git.serves("log")
        time.serves("now")
        answer = hub.hears()
        listed = [tool["name"] for tool in answer["result"]["tools"]]
        assert listed == ["git__log", "mcpwrap_status", "time__now"]


def test_a_member_that_ends_costs_its_own_calls_alone() -> None:
    with hub_of("git", "time", known=[known("git", "log"), known("time", "now")]) as hub:
        hub.begins()
        hub.calls("git__log", 1)
        git = hub.opens()
        git.serves("log")
        git.hears("tools/call")
        git.ends()
        answer = hub.hears()
        assert answer["result"]["isError"]
        assert (
            "git does not answer: it ended with status 3" in answer["result"]["content"][0]["text"]
        )
        hub.calls("time__now", 2)
        time = hub.opens()
        time.serves("now")
        time.answers("tools/call", content=[])
        answer = hub.hears()
        assert answer["id"] == 2
        # It is started anew for the next call, with a handshake of its own.
        hub.calls("git__log", 3)
        again = hub.opens()
        again.serves("log")
        again.answers("tools/call", content=[])
        answer = hub.hears()
        assert (answer["id"], answer["result"]) == (3, {"content": []})


def test_a_refused_member_is_named_with_the_reason() -> None:
    with called_hub() as (hub, git):
        why = "your account is not an agent of git"
        git.control.send(session_socket.encode(session_socket.SessionRefused(77, why)))
        answer = hub.hears()
        assert why in answer["result"]["content"][0]["text"]


def test_a_member_that_the_supervisor_cannot_open_is_named_with_the_reason() -> None:
    with hub_of("git", known=[known("git", "log")]) as hub:
        hub.begins()
        hub.calls("git__log", 1)
        name = hub.wants()
        hub.channel.send(hub_channel.encode(hub_channel.NoSession(name, "the gate is away")))
        answer = hub.hears()
        assert "the gate is away" in answer["result"]["content"][0]["text"]


def test_it_ends_when_the_agent_has_all_answers() -> None:
    with called_hub() as (hub, git):
        git.serves("log")
        hub.close_input()
        git.answers("tools/call", content=[])
        answer = hub.hears()
        assert answer["id"] == 1
        assert hub.has_ended()
        assert git.from_hub.next() is None  # and so does the member's session


def test_a_member_that_never_answers_ends_with_the_agents_input() -> None:
    with called_hub() as (hub, git):
        git.serves("log")
        git.hears("tools/call")
        hub.close_input()
        assert git.from_hub.next() is None  # a server ends then
        git.ends()
        assert hub.hears()["result"]["isError"]
        assert hub.has_ended()


def test_the_last_words_of_a_member_are_the_reason_of_its_end() -> None:
    with called_hub() as (hub, git):
        for words in (b"starting\n", b"cannot open\x1b[1m its database\n\n"):
            git.control.send(session_socket.encode(session_socket.StderrChunk(words)))
        git.ends()
        text = hub.hears()["result"]["content"][0]["text"]
        assert text.startswith("git does not answer: it ended with status 3: cannot open")
        assert "\x1b" not in text


def test_a_member_that_closes_its_output_and_runs_on_is_cut() -> None:
    with called_hub() as (hub, git):
        git.serves("log")
        git.hears("tools/call")
        os.close(git.to_hub_fd)
        git.to_hub_fd = os.dup(git.from_hub.fd)  # which the end of the test closes
        assert "it closed its output" in hub.hears()["result"]["content"][0]["text"]


def test_it_ends_with_its_wrapper() -> None:
    with hub_of("git", known=[known("git", "log")]) as hub:
        hub.begins()
        hub.channel.close()
        assert hub.has_ended()


def test_a_member_that_does_not_read_costs_no_other_one() -> None:
    with hub_of("git", "time", known=[known("git", "log"), known("time", "now")]) as hub:
        hub.begins()
        hub.calls("git__log", 1)
        git = hub.opens()
        git.serves("log")
        text = "x" * 4_000_000  # over what a pipe holds
        hub.asks(id=2, method="tools/call", params={"name": "git__log", "arguments": {"a": text}})
        hub.calls("time__now", 3)
        time = hub.opens()
        time.serves("now")
        time.answers("tools/call", content=[])
        answer = hub.hears()
        assert answer["id"] == 3
        git.answers("tools/call", content=[])
        git.answers("tools/call", content=[])
        for expected in (1, 2):
            answer = hub.hears()
            assert answer["id"] == expected


def test_output_that_is_no_message_cuts_its_member() -> None:
    with called_hub() as (hub, git):
        git.serves("log")
        git.hears("tools/call")
        os.write(git.to_hub_fd, b"Listening on stdio\n")
        answer = hub.hears()
        assert "a line of it is not a message" in answer["result"]["content"][0]["text"]


def test_it_can_be_ended_by_a_signal() -> None:
    with hub_of("git", known=[known("git", "log")]) as hub:
        hub.begins()
        hub.process.terminate()
        assert hub.process.wait(pace.WAIT_S) == -signal.SIGTERM
