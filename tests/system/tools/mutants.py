"""`make mutants`: check that `make test` fails without a mechanism that matters.

RUNS AS ROOT on the host. Each mutant is a copy of the tree with one line changed; the stories of
its room in the fast tier run until one fails. Exit status: 0 each mutant was noticed; 1 otherwise.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
FAILED = re.compile(r"^(?:FAILED|ERROR) tests/system/(.*)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A change of one file, and the room of the stories that should notice it."""

    name: str
    file: str
    text: str
    instead: str
    room: str


MUTANTS = (
    Mutant(
        "the terminal's door: what a name would have a terminal do is written out",
        "mcpwrap/linux/tty.py",
        'return visible(text).replace("\\n", "\\\\n")',
        "return text",
        "install",
    ),
    Mutant(
        "who can change a program: whose a file on its path is",
        "mcpwrap/linux/executables/ownership.py",
        "        if info.st_uid not in own:\n",
        "        if False:\n",
        "apply",
    ),
    Mutant(
        "the wrapper's look at a program before it starts it",
        "mcpwrap/as_wrapper/session.py",
        "    start.expect_unchanged(context.spec)\n",
        "",
        "apply",
    ),
    Mutant(
        "apply: one command for the units of many servers",
        "mcpwrap/plan/steps.py",
        "_AT_ONCE = 50\n",
        "_AT_ONCE = 1\n",
        "apply",
    ),
    Mutant(
        "the packet rules of a next version",
        "nftables/mcpwrap.nft",
        '        meta skuid "mcpwrap-next" goto next\n',
        "",
        "pins",
    ),
    Mutant(
        "the end of a next version's egress, whichever process was killed",
        "units/mcpwrap-next-egress.service",
        "StopWhenUnneeded=yes\n",
        "",
        "pins",
    ),
    Mutant(
        "the end of a next version that no process waits for",
        "mcpwrap/as_wrapper/next_version/definitions_reader.py",
        "        poll.register(self._requester_fd, 0)  # POLLHUP alone\n",
        "",
        "pins",
    ),
    Mutant(
        "what is held in a workspace",
        "mcpwrap/core/mount_layout.py",
        "    names: tuple[str, ...] = HELD if workspaces.protect else ()\n",
        "    names: tuple[str, ...] = ()\n",
        "isolation",
    ),
    Mutant(
        "the restart of a killed gate at once",
        "units/mcpwrap-gate.service",
        "RestartSec=100ms\n",
        "RestartSec=6\n",
        "session",
    ),
    Mutant(
        "which variables an agent may choose",
        "mcpwrap/core/environment.py",
        '    return "" if kind.values.fullmatch(value) else',
        '    return "" if True else',
        "isolation",
    ),
    Mutant(
        "whose processors a server sets",
        "mcpwrap/linux/seccomp/wrapped_server.py",
        '        ("sched_setaffinity", _ON_ITSELF),\n',
        "",
        "isolation",
    ),
    Mutant(
        "the order of `panic` that needs no disk",
        "mcpwrap/as_gate/state/emergency_stop.py",
        'PANIC = (Path("/run/mcpwrap/panic.json"), Path("/var/lib/mcpwrap/panic.json"))',
        'PANIC = (Path("/var/lib/mcpwrap/panic.json"),)',
        "gate",
    ),
    Mutant(
        "the watch on the reader of a session's output",
        "mcpwrap/as_gate/session/admit.py",
        "    ends.register(to_agent_fd, select.EPOLLONESHOT)\n",
        "",
        "session",
    ),
    Mutant(
        "the umask of a server",
        "mcpwrap/session/launch/spawn.py",
        "    os.umask(umask)\n",
        "",
        "isolation",
    ),
    Mutant(
        "the bound on what a server keeps",
        "mcpwrap/as_wrapper/resource_limits.py",
        "        return self.disk.excess()",
        '        return ""',
        "session",
    ),
    Mutant(
        "the reason that an agent without a session is told",
        "mcpwrap/as_agent/stub.py",
        "        answer(fds, status, why)\n",
        "        pass\n",
        "session",
    ),
    Mutant(
        "the version of the protocol in a hello",
        "mcpwrap/core/wire/session_socket.py",
        "    if int(number[1]) != protocol:\n",
        "    if False:\n",
        "session",
    ),
    Mutant(
        "an upgrade's end of the wrappers before the new gate starts",
        "units/mcpwrap-upgrade.service",
        "ExecStart=-/usr/bin/systemctl --quiet stop mcpwrap@*.service\n",
        "",
        "install",
    ),
    Mutant(
        "whose a FIFO is",
        "mcpwrap/linux/unix_socket/fd_passing.py",
        "info.st_uid not in {uid, 0}",
        "False",
        "session",
    ),
    Mutant(
        "who can replace root's files: the mode of a folder",
        "mcpwrap/linux/root_files.py",
        "    if info.st_uid != 0 or is_writable:\n",
        "    if False:\n",
        "apply",
    ),
    Mutant(
        "a packet rule: what is of a wrapper is judged",
        "nftables/mcpwrap.nft",
        "meta skuid @wrapped goto wrapper\n",
        "\n",
        "isolation",
    ),
    Mutant(
        "a unit directive: ProtectHome=",
        "units/mcpwrap@.service",
        "\nProtectHome=",
        "\n#ProtectHome=",
        "isolation",
    ),
    Mutant(
        "the watchdog of a Squid that hangs",
        "units/mcpwrap-squid-KIND@.service",
        "WatchdogSec=10\n",
        "WatchdogSec=1h\n",
        "egress",
    ),
    Mutant(
        "the packet rules by which Squid is asked whether it answers",
        "nftables/mcpwrap.nft",
        '        meta skuid "mcpwrap-proxy" ip daddr 127.77.128.0/18 tcp dport 3128 accept\n',
        "",
        "egress",
    ),
    Mutant(
        "the watchdog of a watch that hangs",
        "units/mcpwrap-watch.service",
        "WatchdogSec=3\n",
        "WatchdogSec=30\n",
        "egress",
    ),
    Mutant(
        "the look at the packet rules, past what servers fill",
        "mcpwrap/machine/nft_table.py",
        '"list", "ruleset", "inet"',
        '"list", "table", "inet", "mcpwrap"',
        "egress",
    ),
    Mutant(
        "a line of Squid's: what was not judged good is refused",
        "squid/last.conf",
        "miss_access deny all\n",
        "miss_access allow all\n",
        "egress",
    ),
    Mutant(
        "the policy's block",
        "mcpwrap/core/gate/from_agent.py",
        "    if judgement.decision is Decision.BLOCK:\n",
        "    if False:\n",
        "gate",
    ),
    Mutant(
        "the redactor",
        "mcpwrap/core/secrets/redact.py",
        "        if not self._marker_by_form:\n            return chunk\n",
        "        return chunk\n",
        "secrets",
    ),
    Mutant(
        "the check of who approves",
        "mcpwrap/core/approval/authorization.py",
        '        return "yes" if rights.same_uid else "proof"',
        '        return "yes"',
        "approvals",
    ),
    Mutant(
        "an approval rule covers no call that differs where nothing was ticked",
        "mcpwrap/core/approval/approval_rule.py",
        "            or (name in glob_by_name and may_be(glob_by_name[name], now.get(name)))\n",
        "            or may_be(glob_by_name.get(name, ANY), now.get(name))\n",
        "approvals",
    ),
    Mutant(
        "the count of an approval rule",
        "mcpwrap/core/approval/rule_book.py",
        "        if rule.times == 1:\n",
        "        if False:\n",
        "approvals",
    ),
    Mutant(
        "a proof of the agent's own account before it saves an approval rule",
        "mcpwrap/as_gate/approvals/decisions.py",
        '        if allowed == "yes":\n',
        '        if allowed == "yes" or decide.scope is Scope.RULE:\n',
        "approvals",
    ),
    Mutant(
        "the name of a group for a screen reader",
        "mcpwrap/as_web/templates/_calls.html",
        '<section aria-labelledby="group-{{ group.key }}">',
        "<section>",
        "approvals",
    ),
    Mutant(
        "`mcpwrap run`: a form that comes back at once was answered by no person",
        "mcpwrap/core/gate/approval_wait.py",
        "    if session.now_s - pending.asked_by_form_at_s < PERSON_S:\n",
        "    if False:\n",
        "run",
    ),
    Mutant(
        "`mcpwrap run`: a faulty policy changes nothing",
        "mcpwrap/as_agent/run/local_gate.py",
        ': {error}")\n            return\n',
        ': {error}")\n            raise\n',
        "run",
    ),
    Mutant(
        "`mcpwrap init` adds a person to the group",
        "mcpwrap/cli/setup/init/account_steps.py",
        "        _add(who, USERS_GROUP)\n",
        "",
        "install",
    ),
    Mutant(
        "`wrap --unprivileged`: who gets the network",
        "mcpwrap/config/migration/unprivileged.py",
        "    has_network = stdio_server.is_fetcher(name)\n",
        "    has_network = True\n",
        "wrap",
    ),
    Mutant(
        "the end of the wrappers that `doctor` started",
        "mcpwrap/machine/doctor/trial_wrappers.py",
        "        if not is_anothers:\n",
        "        if False:\n",
        "install",
    ),
    Mutant(
        "the trial of what `apply` needs of the machine",
        "mcpwrap/machine/planning.py",
        "        mechanisms.expect(config)\n",
        "        pass\n",
        "apply",
    ),
    Mutant(
        "the folder around a file that its server replaces",
        "mcpwrap/config/migration/path_grants.py",
        "        return True\n    return bool(place.top) and (",
        "        return True\n    return False and (",
        "wrap",
    ),
    Mutant(
        "the order: a record is written before its message is forwarded",
        "mcpwrap/session/audit_log/recorder.py",
        "not self._file.append(encode(self._record(decided, us)))",
        "not self._file.append(self._late(encode(self._record(decided, us))))",
        "audit",
    ),
    Mutant(
        "a hub's session is claimed by the hub's supervisor alone",
        "mcpwrap/as_gate/hubs/hub_identity.py",
        "    if not is_account or peer_credentials.service_of(peer.pid) != (unit, _SUPERVISOR):\n",
        "    if not is_account:\n",
        "hub",
    ),
    Mutant(
        "a member of a hub: by which transports",
        "mcpwrap/as_gate/hubs/hub_identity.py",
        "not in found.transports:\n",
        "not in found.transports and False:\n",
        "hub",
    ),
    Mutant(
        "the variables of a hub's agent, each for the members that inherit it",
        "mcpwrap/as_wrapper/member_sessions.py",
        "        variables = {name: given[name] for name in sorted(names) if name in given}\n",
        "        variables = {**given}\n",
        "hub",
    ),
    Mutant(
        "projects: the empty folder over each list",
        "mcpwrap/as_wrapper/project/view.py",
        "        mount_api.attach_empty_folder(listed.path)\n",
        "",
        "isolation",
    ),
    Mutant(
        "projects: the folder found is the one that the agent has open",
        "mcpwrap/as_wrapper/project/lookup.py",
        "        _expect_same(fds[-1], wanted)\n",
        "",
        "isolation",
    ),
    Mutant(
        "projects: the list is of the agent's own account",
        "mcpwrap/as_wrapper/project/agent_folder.py",
        "    if listed is not None and owner_by_list[listed] != folder.agent_uid:\n",
        "    if False:\n",
        "isolation",
    ),
    Mutant(
        "projects: names from which programs run code are held",
        "mcpwrap/as_wrapper/project/view.py",
        "    for layer in held_in_project(own, there):\n",
        "    for layer in ():\n",
        "isolation",
    ),
    Mutant(
        "projects: the server makes no namespace",
        "mcpwrap/session/launch/sandbox.py",
        "            no_namespaces.refuse_namespaces()\n",
        "            pass\n",
        "isolation",
    ),
    Mutant(
        "projects: a rule for one holds in it",
        "mcpwrap/as_gate/session/judge.py",
        "        self._take(self._policy.in_project(seen.path))\n",
        "",
        "isolation",
    ),
    Mutant(
        "what a hub lists: filtered as the member's own list",
        "mcpwrap/as_gate/hubs/catalogue.py",
        "        definitions=filter_definitions(policy, divided.accepted),\n",
        "        definitions=divided.accepted,\n",
        "hub",
    ),
    Mutant(
        "an approval of a hub's call, for the member's call too",
        "mcpwrap/as_gate/approvals/broker.py",
        "        if not child.via or not packet.outer:\n",
        "        if True:\n",
        "hub",
    ),
    Mutant(
        "a member without a namespace shadows no other",
        "mcpwrap/core/hub/lists/exposed_lists.py",
        "        if not self.namespaces[member] and exposed.startswith(self.prefixes):\n",
        "        if False:\n",
        "hub",
    ),
    Mutant(
        "a member of a hub that sends too much",
        "mcpwrap/core/hub/state/flood_meter.py",
        "        return self._lines <= MAX_LINES and self._bytes <= MAX_BYTES\n",
        "        return True\n",
        "hub",
    ),
    Mutant(
        "a resource of two members of a hub",
        "mcpwrap/core/hub/routing.py",
        "    if others:\n",
        "    if False:\n",
        "hub",
    ),
    Mutant(
        "list_changed of a hub, only when a list has changed",
        "mcpwrap/core/hub/state/hub_state.py",
        " if getattr(before, name) != getattr(now, name)}\n",
        "}\n",
        "hub",
    ),
    Mutant(
        "pins: what is listed is compared with what was accepted",
        "mcpwrap/core/gate/definitions/pin_check.py",
        "            if self._may_use(key):\n                self._left_out.discard(key)\n",
        "            if True:\n                self._left_out.discard(key)\n",
        "pins",
    ),
    Mutant(
        "pins: a call is compared with what was accepted",
        "mcpwrap/core/gate/definitions/pin_check.py",
        "        if key is None or self._may_use(key):\n",
        "        if True:\n",
        "pins",
    ),
    Mutant(
        "pins: all of a definition counts",
        "mcpwrap/core/pins/definitions.py",
        "    return Definition(key, encode_sorted(entry))\n",
        "    return Definition(key, encode_sorted(dict(list(entry.items())[:3])))\n",
        "pins",
    ),
    Mutant(
        "pins: the first use ends with the last page",
        "mcpwrap/core/pins/acceptance.py",
        "    return begun.session == session and not begun.is_complete and not is_first_page\n",
        "    return True\n",
        "pins",
    ),
    Mutant(
        "pins: what one account is listed is held for no other",
        "mcpwrap/core/pins/pins_view.py",
        "            if one.uid == uid:\n",
        "            if one.uid:\n",
        "pins",
    ),
    Mutant(
        "pins: what a server says of itself",
        "mcpwrap/core/gate/definitions/pin_check.py",
        "        if self._note_left_out([_OWN]):\n",
        "        if False:\n",
        "pins",
    ),
    Mutant(
        "pins: a running session gets what was accepted",
        "mcpwrap/as_gate/pins/keeper.py",
        "                elif is_new:\n",
        "                elif False:\n",
        "pins",
    ),
    Mutant(
        "pins: what was rejected is remembered",
        "mcpwrap/core/pins/acceptance.py",
        "    rejected = (*before, *added)[-MAX_REJECTED:]\n",
        "    rejected = tuple(before)\n",
        "pins",
    ),
    Mutant(
        "pins: an answer is for what was shown",
        "mcpwrap/as_gate/pins/questions.py",
        "        if decide.digest != self.about.digest:\n",
        "        if False:\n",
        "pins",
    ),
    Mutant(
        "pins: a part of a question is that part",
        "mcpwrap/as_gate/pins/worker.py",
        "    return [one for one in decided if one.digest in digests]\n",
        "    return list(decided)\n",
        "pins",
    ),
    Mutant(
        "pins: who may be the server's agent does not accept",
        "mcpwrap/as_gate/pins/questions.py",
        "        return uid if rule is not None and rule.may_have_agent(uid, gids) else NO_AGENT\n",
        "        return NO_AGENT\n",
        "pins",
    ),
    Mutant(
        "pins: where it is strict, no first use",
        "mcpwrap/as_gate/pins/worker.py",
        '        is_strict = self._mode == "strict"\n',
        "        is_strict = False\n",
        "pins",
    ),
    Mutant(
        "pins: where it is strict, a finding",
        "mcpwrap/as_gate/pins/worker.py",
        '        if self._mode != "strict" or task.with_findings:\n',
        "        if True:\n",
        "pins",
    ),
    Mutant(
        "pins: the first line of a file",
        "mcpwrap/core/pins/pins_file.py",
        "    digest = hashlib.sha256(rest).hexdigest()\n",
        "    digest = first.decode()\n",
        "pins",
    ),
    Mutant(
        "pins: an old copy of a file",
        "mcpwrap/core/audit/verify.py",
        "        pins_check.compare(pins)\n",
        "        pass\n",
        "pins",
    ),
    Mutant(
        "pins: a version that was recorded is put in force by the next gate",
        "mcpwrap/as_gate/pins/worker.py",
        "        if after:  # recorded or not, it was authorized\n",
        "        if False:\n",
        "pins",
    ),
    Mutant(
        "pins: what a hub lists of a member",
        "mcpwrap/as_gate/hubs/catalogue.py",
        "        definitions=filter_definitions(policy, divided.accepted),\n",
        "        definitions=filter_definitions(policy, found),\n",
        "pins",
    ),
    Mutant(
        "pins: a member's list is read before a call",
        "mcpwrap/core/hub/member_start.py",
        " and _LIST_BEFORE.get(request.method) not in member.unread:\n",
        ":\n",
        "pins",
    ),
    Mutant(
        "default policy: its rules",
        "mcpwrap/core/policy/compiled.py",
        "        if not default_rules or judgement.decision is Decision.BLOCK:\n",
        "        if True:\n",
        "default_policy",
    ),
    Mutant(
        "default policy: its rules in `mcpwrap run`",
        "mcpwrap/as_agent/run/local_gate.py",
        "        policy = shipped.extended(parse_policy(files))\n",
        "        policy = parse_policy(files)\n",
        "default_policy",
    ),
    Mutant(
        "default policy: its limits, counted in the session",
        "mcpwrap/core/policy/limits/session_limiter.py",
        "        both = limits, self._limits.default_limits_for(tool)\n",
        "        both = limits, None\n",
        "default_policy",
    ),
    Mutant(
        "default policy: a rule that is disabled for one server",
        "mcpwrap/core/policy/rules.py",
        " for entry in policy.disabled if matches_any(entry.servers, name))\n",
        " for entry in policy.disabled)\n",
        "default_policy",
    ),
    Mutant(
        "default policy: an allow lifts the question of a tool that it names",
        "mcpwrap/core/policy/default_policy.py",
        ' for glob in globs if glob.strip("*?"))\n',
        " for glob in globs)\n",
        "default_policy",
    ),
    Mutant(
        "default policy: a question of the operator's stands",
        "mcpwrap/core/policy/compiled.py",
        "        if is_question and judgement.decision is Decision.NEEDS_APPROVAL:\n",
        "        if False:\n",
        "default_policy",
    ),
    Mutant(
        "default policy: rules that hold for sure only",
        "mcpwrap/core/policy/compiled_rule.py",
        'only_if_sure=rule.action == "allow" or rule.only_if_sure,\n',
        'only_if_sure=rule.action == "allow",\n',
        "default_policy",
    ),
    Mutant(
        "default policy: a hub's own session has none",
        "mcpwrap/core/policy/compiled.py",
        "() if context.is_hub else self._compiled(concerned.default_rules)\n",
        "self._compiled(concerned.default_rules)\n",
        "default_policy",
    ),
    Mutant(
        "default policy: the arguments that are SQL",
        "mcpwrap/core/policy/arguments/selection.py",
        "        if kind is None or kind is ArgumentKind.OTHER:\n",
        "        if kind is not ArgumentKind.SHELL:\n",
        "default_policy",
    ),
    Mutant(
        "default policy: a command line in a command line",
        "mcpwrap/core/policy/shell/wrappers.py",
        '("sh", "bash", "dash", ',
        '("dash", ',
        "default_policy",
    ),
    Mutant(
        "a loop ends with the success of another call",
        "mcpwrap/core/policy/limits/repeated_calls.py",
        "        if not outcome.failed and len(calls) != (call is not None):\n",
        "        if False:\n",
        "default_policy",
    ),
    Mutant(
        "a question that no account can answer is refused at once",
        "mcpwrap/as_gate/approvals/reachable.py",
        "        return bool(reachable(agent_uid, self._members, self._with_password)) "
        "or has_polkit()\n",
        "        return True\n",
        "default_policy",
    ),
    Mutant(
        "a refusal has no structure that a tool's output schema forbids",
        "mcpwrap/core/gate/error_responses.py",
        "    return is_known and session.has_no_output_schema(context.target)\n",
        "    return is_known\n",
        "default_policy",
    ),
    Mutant(
        "packages: doctor names the foreign rule that drops a packet",
        "mcpwrap/machine/doctor/foreign_rules.py",
        "    if foreign:\n",
        "    if False:\n",
        "beside",
    ),
    Mutant(
        "packages: `mcpwrap purge` removes the accounts",
        "mcpwrap/plan/purge.py",
        "    yield from map(RemoveAccount, accounts)\n",
        "",
        "install",
    ),
)
# Of the mutant of the audit's order: each record is written when the next one comes.
LATE = """
    _held = b""

    def _late(self, record: bytes) -> bytes:
        before, self._held = self._held, record
        return before

    def _has_room("""


def copy_of_the_tree(target: Path) -> None:
    """Copy the files that git tracks, and those that it would add."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=TOP, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (TOP / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, target / name)


def mutate(tree: Path, mutant: Mutant) -> None:
    """Change the one place.

    Raises:
        ValueError: the text is not there exactly once, so the table above is out of date.
    """
    file = tree / mutant.file
    text = file.read_text()
    if text.count(mutant.text) != 1:
        raise ValueError(f"{mutant.file} does not have this once: {mutant.text!r}")
    text = text.replace(mutant.text, mutant.instead)
    if "self._late(" in text:
        text = text.replace("\n    def _has_room(", LATE)
    file.write_text(text)


def noticed_by(mutant: Mutant) -> str:
    """Return the first story that fails on a mutant; empty if none does."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy_of_the_tree(Path(folder))
        mutate(Path(folder), mutant)
        how = ["-q", "-x", "-n", "2", "--dist", "loadgroup", "--tier=fast"]
        argv = [sys.executable, "-m", "pytest", *how, f"tests/system/{mutant.room}"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    found = FAILED.search(done.stdout)
    return found[1].partition(" - ")[0] if found else ""


def main(names: list[str]) -> int:
    """Run the mutants whose name has one of these words; all without any."""
    missed = 0
    for mutant in MUTANTS:
        if names and not any(name in mutant.name for name in names):
            continue
        story = noticed_by(mutant)
        missed += not story
        print(f"{'noticed' if story else 'MISSED ':8} {mutant.name}\n         {story}", flush=True)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
