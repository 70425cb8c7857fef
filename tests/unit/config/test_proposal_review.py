"""Text of a proposal for a person: its author cannot forge a line."""

import re

import pytest

from mcpwrap.config.proposal import servers_of, texts_of
from mcpwrap.config.proposal_review import ProposalReview, folded, question, shown

RAW = """
[mcp_servers.files]
command = "/usr/bin/node"
args = ["/home/alice/files.js"]
env.TOKEN = "${TOKEN}"
[mcp_servers.files.mcpwrap]
agents = ["alice"]
workspace = ["/home/alice/project:rw"]
[mcp_servers.web]
url = "https://web.example/"
[mcp_servers.web.mcpwrap]
agents = ["alice", "bob", "@staff"]
"""
SEEN = """\
'/home/alice/\\u202e.toml'
proposes 2 servers, files, web. With `yes` this goes into /etc/mcpwrap/conf.d,
and is applied, with everything else in /etc/mcpwrap:

    [mcp_servers.files]
    command = "/usr/bin/node"
    args = ["/home/alice/files.js"]
    env.TOKEN = "${TOKEN}"

    [mcp_servers.files.mcpwrap]
    agents = ["alice"]
    egress = []
    workspace = ["/home/alice/project:rw"]

    [mcp_servers.web]
    url = "https://web.example/"

    [mcp_servers.web.mcpwrap]
    agents = ["alice", "bob", "@staff"]

Who can use it:
  files: alice alone
  web: NOT alice ALONE: alice, and also bob, all members of the group staff
Secrets:
  files TOKEN: given
Notes:
  files does not start: /home/alice/pr\\u043eject is not there; make it; the next
  >  session tries again

"""


NOTE = (
    "files does not start: /home/alice/pr\u043eject is not there; make it; the next session tries "
    "again"
)


def offer(raw: str = RAW, *, by: str = "alice") -> ProposalReview:
    texts = texts_of(raw.encode())
    return ProposalReview(
        path="/home/alice/\u202e.toml",
        text_by_name=texts,
        servers=servers_of(texts),
        by=by,
        secrets=["files TOKEN: given"],
        notes=[NOTE],
    )


def test_a_person_sees_all_of_it() -> None:
    assert shown(offer(), 80) == SEEN
    assert question(offer()).startswith("Nothing was changed so far. Accept 2 servers, files, web?")


def test_projects_are_said_in_words() -> None:
    one = offer(
        "[mcp_servers.a]\ncommand = '/x'\n[mcp_servers.a.mcpwrap]\n"
        "projects = ['/home/alice/src:rw', '/home/alice/work:ro']\n"
    )
    lines = shown(one, 80).split("Notes:\n")[1]
    assert lines.startswith(
        "  a may write the project in '/home/alice/src' in which its agent starts it\n"
        "  a may read the project in '/home/alice/work' in which its agent starts it\n"
    )


def test_what_there_is_none_of_has_no_heading() -> None:
    one = offer("[mcp_servers.a]\ncommand = '/x'\n")
    few = ProposalReview(
        path="/x", text_by_name=one.text_by_name, servers=one.servers, by="", secrets=[], notes=[]
    )
    text = shown(few, 80)
    assert "Secrets" not in text
    assert "Notes" not in text
    assert "1 server, a. With" in text
    assert "  a: all members of the group mcpwrap\n" in text


@pytest.mark.parametrize(
    ("by", "agents", "said"),
    [
        ("alice", '["alice"]', "alice alone"),
        ("alice", '["alice", "alice"]', "alice alone"),
        ("alice", '["bob"]', "NOT alice ALONE: not alice, but bob"),
        ("alice", '["@alice"]', "NOT alice ALONE: not alice, but all members of the group alice"),
        ("", '["alice"]', "alice"),
        ("", '["alice", "@staff"]', "alice, all members of the group staff"),
    ],
)
def test_all_users_are_named(by: str, agents: str, said: str) -> None:
    raw = f"[mcp_servers.a]\ncommand = '/x'\n[mcp_servers.a.mcpwrap]\nagents = {agents}\n"
    assert f"\n  a: {said}\n" in shown(offer(raw, by=by), 80)


def test_of_many_the_first_are_named_in_the_question() -> None:
    raw = "".join(f"[mcp_servers.a{n}]\ncommand = '/x'\n" for n in range(6))
    assert "Accept 6 servers, a0, a1, a2, a3 and 2 more?" in question(offer(raw))


FORGED = "egress = []"


@pytest.mark.parametrize("columns", [0, 20, 40, 57, 80, 1000])
def test_no_text_passes_as_another_line(columns: int) -> None:
    """Blanks up to the edge of the window, and then text that looks like a setting."""
    spaces = [" " * n for n in range(20, 90)]
    values = [f"{space}    {FORGED}{' ' * 80}{FORGED}\\n{FORGED}" for space in spaces]
    args = ", ".join(f'"{value}"' for value in values)
    raw = (
        f'[mcp_servers.a]\ncommand = "/x"\nargs = [{args}]\n'
        '[mcp_servers.a.mcpwrap]\negress = ["bad.example"]\n'
    )
    lines = shown(offer(raw), columns).splitlines()
    assert max(map(len, lines)) <= max(40, min(columns, 80))
    assert not [line for line in lines if line.strip() == FORGED]
    assert [line for line in lines if line == '    egress = ["bad.example"]']
    whole = "\n".join(lines).replace("\n  > ", "")
    for text in offer(raw).text_by_name.values():
        assert all(f"    {line}".rstrip() in whole for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("12345678", ["12345678"]),
        ("123456789", ["12345678", "  > 9"]),
        ("1234567890ABCD", ["12345678", "  > 90AB", "  > CD"]),
        ("a\nb", ["a", "b"]),
        ("é😀", ["\\xe9\\U00", "  > 01f6", "  > 00"]),
    ],
)
def test_a_line_that_does_not_fit_goes_on_behind_a_mark(text: str, lines: list[str]) -> None:
    assert list(folded(text, 8)) == lines


def test_nothing_but_plain_characters_is_seen() -> None:
    hostile = "\x1b]0;x\x07\x1b[2J\u202e\u2066\u0430\u200b\x9b\x7f\r\t"
    raw = f"""
[mcp_servers.a]
command = "/x{hostile.encode("unicode_escape").decode().replace(chr(92) + "x", "_")}"
args = ["\\u001B[2J\\u202E\\u0430\\u0085\\r"]
"""
    assert re.fullmatch(r"[\n -~]*", shown(offer(raw), 80))
