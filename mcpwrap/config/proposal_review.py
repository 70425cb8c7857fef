"""Text of a proposal for a person's review: complete, in ASCII, and inert on a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcpwrap.config.model import Server

_MIN_COLUMNS, _MAX_COLUMNS = 40, 80  # a terminal could cut wider lines where a proposal chooses
_INDENT, _ON = "    ", "  > "  # continuation mark: no other line of a proposal begins with it


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalReview:
    """Proposal, and its effect on this machine."""

    path: str
    text_by_name: Mapping[str, str]
    servers: Mapping[str, Server]
    by: str  # the account that called sudo; "" if it is not known
    secrets: Sequence[str]  # a line for each
    notes: Sequence[str]


def shown(offer: ProposalReview, columns: int) -> str:
    """Return the text for a terminal of this width."""
    width = max(_MIN_COLUMNS, min(columns, _MAX_COLUMNS))
    return "".join(f"{part}\n" for line in _lines(offer) for part in folded(line, width))


def question(offer: ProposalReview) -> str:
    """Return the question at the end."""
    return f"Nothing was changed so far. Accept {_counted(offer.servers)}? Type yes or no: "


def folded(text: str, columns: int) -> Iterator[str]:
    """Yield the lines of a text, cut to the width; a continuation is marked."""
    visible = text.encode("ascii", "backslashreplace").decode()
    for line in visible.splitlines() or [""]:
        yield line[:columns]
        width = columns - len(_ON)
        for start in range(columns, len(line), width):
            yield f"{_ON}{line[start : start + width]}"


def _lines(offer: ProposalReview) -> Iterator[str]:
    yield f"{offer.path!a}"
    yield f"proposes {_counted(offer.servers)}. With `yes` this goes into /etc/mcpwrap/conf.d,"
    yield "and is applied, with everything else in /etc/mcpwrap:"
    for text in offer.text_by_name.values():
        yield ""
        yield from (f"{_INDENT}{line}".rstrip() for line in text.splitlines())
    yield ""
    yield "Who can use it:"
    yield from (f"  {name}: {_users(server, offer.by)}" for name, server in offer.servers.items())
    notes = [*_projects(offer.servers), *offer.notes]
    for head, lines in (("Secrets:", offer.secrets), ("Notes:", notes)):
        if lines:
            yield head
            yield from (f"  {line}" for line in lines)
    yield ""


def _projects(servers: Mapping[str, Server]) -> Iterator[str]:
    for name, server in servers.items():
        for folder in server.projects:
            may = "write" if folder.is_writable else "read"
            yield f"{name} may {may} the project in {folder.path!a} in which its agent starts it"


def _users(server: Server, by: str) -> str:
    others = [_account(agent) for agent in server.agents if agent != by]
    if not by:
        return ", ".join(others)
    if not others:
        return f"{by} alone"
    too = f"{by}, and also" if by in server.agents else f"not {by}, but"
    return f"NOT {by} ALONE: {too} {', '.join(others)}"


def _account(agent: str) -> str:
    return f"all members of the group {agent[1:]}" if agent.startswith("@") else agent


def _counted(servers: Mapping[str, Server]) -> str:
    few = list(servers)[:4]
    more = f" and {len(servers) - len(few)} more" if len(servers) > len(few) else ""
    return f"{len(servers)} {'server' if len(servers) == 1 else 'servers'}, {', '.join(few)}{more}"
