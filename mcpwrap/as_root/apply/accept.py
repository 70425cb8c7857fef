"""`mcpwrap accept`: add proposed servers after a person has read and confirmed them."""

from collections.abc import Iterator
from pathlib import Path

from mcpwrap.as_root.apply import apply, proposal_intake
from mcpwrap.as_root.apply.proposal_intake import ReviewedProposal, Secrets
from mcpwrap.as_root.lock import only_one
from mcpwrap.as_root.secrets import command
from mcpwrap.config import value_parsers
from mcpwrap.config.parse import parse
from mcpwrap.config.proposal import expect_nobodys, settable
from mcpwrap.config.proposal_review import ProposalReview, question, shown
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.errors import McpwrapError, UsageError, nothing_changed
from mcpwrap.linux import root_files, tty
from mcpwrap.linux.root_files import NewFile
from mcpwrap.machine import observer, planning, secret_index_file
from mcpwrap.plan import paths, widened_boundaries
from mcpwrap.plan.diff.diff import RetirementPolicy

_WHERE = "mcpwrap accept"
_EMPTY = (
    "# The MCP servers of this machine: `man mcpwrap.toml`. Those that were accepted: conf.d.\n"
)


def accept(digest: str, path: str, *, by: str) -> None:
    """Show the proposal, ask for `yes`, write it to the configuration, and apply that.

    After an interruption a second run completes it, and so does `apply`. `by` is the account that
    called sudo, "" if it is not known.

    Raises:
        McpwrapError: a person did not confirm it, it is invalid, or a step failed.
    """
    wanted = proposal_intake.read(path, digest)
    secrets = proposal_intake.secrets_for(wanted.servers)
    offer = ProposalReview(
        path=path,
        text_by_name=wanted.text_by_name,
        servers=wanted.servers,
        by=_agent(by),
        secrets=list(_secret_lines(wanted, secrets)),
        notes=[*widened_boundaries.of_servers(wanted.servers.values()), *_notes(_added(wanted))],
    )
    if not tty.says_yes(lambda columns: shown(offer, columns), question(offer)):
        raise McpwrapError(
            "the proposal was not confirmed with `yes`; nothing was changed",
            where=_WHERE,
            fix="run the same command again and answer `yes`",
            code="E-PROPOSAL-NOT-CONFIRMED",
        )
    with only_one():  # not earlier: no other program waits for the lock while a person reads
        added = _added(wanted)
        _notes(added)  # once more: the machine may have changed since
        _carry_out(added, secrets)


def _carry_out(added: dict[str, str], secrets: Secrets) -> None:
    texts = [NewFile(path=path, text=text) for path, text in added.items()]
    given = {(name, key): value for name, of in secrets.items() for key, value in of.items()}
    with nothing_changed():
        if given:
            command.set_all(given, texts)
        elif texts:
            root_files.replace_all(texts)
    apply.apply(RetirementPolicy.KEEP)
    for name, key in given:
        command.say_what_is_left(name, key)


def _agent(name: str) -> str:
    """Return the account that called sudo, "" if it cannot be an agent."""
    try:
        return value_parsers.agent(name).removeprefix("@")
    except BadValueError:
        return ""


def _added(wanted: ReviewedProposal) -> dict[str, str]:
    """Return the texts of the files to write, by path: those that do not exist yet.

    Raises:
        UsageError: another server or file of that name exists, or remains of a removed server.
    """
    added = {} if _is_configured() else {paths.CONFIG_FILE: _EMPTY}
    there = observer.config_files(added)
    content_by_path = {file.name: file.content for file in there}
    known = parse(there).file_by_server
    problems, fresh = [], []
    for name, text in wanted.text_by_name.items():
        path = f"{paths.CONFIG_DIR}/{name}.toml"
        if content_by_path.get(path) == text.encode():
            continue
        if name in known or path in content_by_path:
            problems.append(f"{name} (in {known.get(name, path)})")
        added[path] = text
        fresh.append(name)
    if problems:
        raise UsageError(
            f"other servers have these names: {', '.join(problems)}; nothing was changed",
            where=_WHERE,
            fix="propose the server under another name, or remove the existing one first",
            code="E-PROPOSAL-NAME-EXISTS",
        )
    expect_nobodys(fresh, observer.registry().by_name)
    return added


def _is_configured() -> bool:
    """Return whether the machine has or had a configuration: if so, no new one is made."""
    return Path(paths.CONFIG_FILE).exists() or bool(observer.server_names())


def _notes(added: dict[str, str]) -> list[str]:
    """Plan these files and map their workspaces; return the notes for the operator.

    Raises:
        McpwrapError: this machine cannot be configured so.
    """
    return apply.check_workspaces(planning.planned(added=added).wanted)


def _secret_lines(wanted: ReviewedProposal, secrets: Secrets) -> Iterator[str]:
    """Yield a line for each secret: given, set before, or missing."""
    settings = secret_index_file.read()
    for name, server in wanted.servers.items():
        for key in settable(server):
            known = settings.of(name, key)
            is_set = known is not None and known.is_set
            if key in secrets.get(name, {}):
                yield f"{name} {key}: given{', replaces the one that is set' * is_set}"
            elif is_set:
                yield f"{name} {key}: stays as it was set before"
            else:
                yield f"{name} {key}: MISSING, to be set by `sudo mcpwrap secret set {name} {key}`"
