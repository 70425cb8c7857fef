"""Verification of the audit: all tampering is found, and an honest gate's audit has no finding."""

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mcpwrap.core.audit import reader, records, verify_master
from mcpwrap.core.audit.hash_chain import Chain
from mcpwrap.core.audit.reader import AuditFinding, AuditReport
from mcpwrap.core.audit.records import Anchor, ChainHead, Keys, decode_event, encode
from tests.unit.core.audits import ROOT_KEY, T0, Files, Gate, Session, checked, keys

M1, M2 = "00000001/master.jsonl", "00000002/master.jsonl"
A1, A2, B1 = "00000001/1-1.jsonl", "00000001/1-2.jsonl", "00000001/2-1.jsonl"
C1 = "00000002/1-1.jsonl"
Forge = Callable[[Files], object]


class World:
    """Two runs of the gate: one that ended, and one that continues."""

    def __init__(self) -> None:
        self.files: Files = {}
        first = Gate(self.files)
        one, other = first.open(), first.open("fetch", uid=1001)
        first.record(one, times=3)
        first.record(other, times=2)
        first.heads(one, other)
        first.record(one, times=2)
        first.next_part(one)
        first.record(one, times=3)
        first.record(other, times=4)
        first.heads(one, other)
        first.anchor()
        first.close(one)
        first.close(other)
        first.end()
        self.first = first
        self.gate = Gate(self.files, epoch=2)
        self.live = self.gate.open()
        self.gate.record(self.live, times=4)
        self.gate.heads(self.live)
        self.gate.anchor()
        self.gate.record(self.live, times=2)

    @property
    def anchors(self) -> list[Anchor]:
        return self.first.anchors + self.gate.anchors

    def checked(self, known: Keys | None = None, dropped: str = "") -> AuditReport:
        return checked(self.files, self.anchors, known or keys(2), dropped)


@pytest.fixture
def world() -> World:
    return World()


def edit(path: str, line: int, change: Callable[[list[bytes], int], object]) -> Forge:
    def forge(files: Files) -> None:
        lines = files[path].splitlines(keepends=True)
        change(lines, line - 1)
        files[path] = b"".join(lines)

    return forge


def replaced(lines: list[bytes], at: int) -> None:
    lines[at] = lines[at].replace(b"tools/call", b"tools/list").replace(b'"at":', b'"at":1')


def deleted(lines: list[bytes], at: int) -> None:
    del lines[at]


def doubled(lines: list[bytes], at: int) -> None:
    lines.insert(at, lines[at - 1])


def swapped(lines: list[bytes], at: int) -> None:
    lines[at], lines[at + 1] = lines[at + 1], lines[at]


def cut_off(lines: list[bytes], at: int) -> None:
    del lines[at:]


def remove_mac(lines: list[bytes], at: int) -> None:
    lines[at] = re.sub(rb',"mac":.*', b"}", lines[at])


def spaced(lines: list[bytes], at: int) -> None:
    lines[at] = lines[at].replace(b":", b": ", 1)


def emptied(lines: list[bytes], at: int) -> None:
    lines[at:] = []


def torn(lines: list[bytes], at: int) -> None:
    lines[at] = lines[at][:20] + b"!\n"


def noise(lines: list[bytes], at: int) -> None:
    lines.insert(at, b"something!\n")


def unended(lines: list[bytes], at: int) -> None:
    lines[at] = lines[at][:-1]


def reread(path: str, key_from: str) -> Forge:
    """Replace a file by another one."""
    return lambda files: files.update({path: files[key_from]})


def rewritten(files: Files) -> None:
    """Write the whole first run again, with another key."""
    for path in (M1, A1, A2, B1):
        del files[path]
    gate = Gate(files, root_key=bytes(32))
    session = gate.open()
    gate.record(session, times=3)
    gate.close(session)
    gate.end()


NOT_3 = "is not record 3 as it was written"
FOREIGN = "is not a file of a session in the master chain"

ATTACKS: dict[str, tuple[Forge, list[tuple[str, int, str]]]] = {
    "a record is changed": (edit(B1, 4, replaced), [(B1, 4, NOT_3)]),
    "the first is": (edit(B1, 1, replaced), [(B1, 1, "is not record 0 as it was written")]),
    "the last is": (edit(B1, 6, replaced), [(B1, 6, "is not record 5 as it was written")]),
    "two are": (
        lambda files: [edit(B1, n, replaced)(files) for n in (2, 5)],
        [(B1, 2, "is not record 1"), (B1, 5, "is not record 4")],
    ),
    "two in a row are": (
        lambda files: [edit(B1, n, replaced)(files) for n in (2, 3)],
        [(B1, 2, "is not record 1")],
    ),
    "a space is put in": (edit(B1, 4, spaced), [(B1, 4, NOT_3)]),
    "a MAC is taken out": (
        edit(B1, 4, remove_mac),
        [(B1, 4, NOT_3)],
    ),
    "a newline is taken out": (
        edit(B1, 4, unended),
        [(B1, 4, NOT_3)],
    ),
    "a record is made a torn line": (
        edit(B1, 4, torn),
        [(B1, 5, NOT_3 + "; it claims to be record 4")],
    ),
    "a torn line is put in": (
        edit(B1, 4, noise),
        [(B1, 5, "9 bytes before it are not a record, but it reports 0")],
    ),
    "a record is deleted": (
        edit(B1, 4, deleted),
        [(B1, 4, NOT_3 + "; it claims to be record 4")],
    ),
    "the first is deleted": (edit(B1, 1, deleted), [(B1, 1, "is not record 0")]),
    "a record is there twice": (
        edit(B1, 4, doubled),
        [(B1, 4, NOT_3 + "; it claims to be record 2")],
    ),
    "two are in another order": (
        edit(B1, 3, swapped),
        [(B1, 3, "is not record 2"), (B1, 5, "is not record 3")],
    ),
    "the end is cut off": (
        edit(B1, 5, cut_off),
        [(B1, 0, "ends after record 3; line 8 of the master chain has 6 records")],
    ),
    "the end of a part is cut off": (
        edit(A1, 5, cut_off),
        [(A1, 0, "ends after record 3; line 5 of the master chain has 5 records")],
    ),
    "the last line loses its newline": (
        edit(B1, 6, unended),
        [(B1, 0, "ends after record 4; line 8 of the master chain has 6 records")],
    ),
    "a file is emptied": (
        edit(B1, 1, emptied),
        [(B1, 0, "has no record; line 8 of the master chain has")],
    ),
    "a file is gone": (lambda f: f.pop(B1), [(B1, 0, "is missing; it had at least 6 records")]),
    "a first part is gone": (
        lambda f: f.pop(A1),
        [(A1, 0, "is missing; it had at least 5 records")],
    ),
    "a last part is gone": (
        lambda f: f.pop(A2),
        [(A2, 0, "is missing; it had at least 3 records")],
    ),
    "a file takes another's place": (
        reread(B1, A1),
        [(B1, 1, "is not record 0")],
    ),
    "parts are exchanged": (
        lambda files: files.update({A1: files[A2], A2: files[A1]}),
        [
            (A1, 1, "is not record 0"),
            (A1, 0, "continues to record 7; line 5 of the master chain has 5"),
            (A2, 1, "is not record 5"),
        ],
    ),
    "a file is put in": (reread("00000001/9-1.jsonl", A1), [("00000001/9-1.jsonl", 0, FOREIGN)]),
    "a part is put in": (reread("00000001/2-2.jsonl", A1), [("00000001/2-2.jsonl", 0, FOREIGN)]),
    "a folder is put in": (
        reread("00000003/1-1.jsonl", A1),
        [("00000003", 0, "not a folder of the audit")],
    ),
    "a name steers the terminal": (
        reread("00000001/\x1b[2J\n\udcff", A1),
        [("00000001/\\x1b[2J\\n\\udcff", 0, FOREIGN)],
    ),
    "the opening is changed": (
        edit(M1, 3, lambda lines, at: lines.__setitem__(at, lines[at].replace(b"fetch", b"FETCH"))),
        [(M1, 3, "is not record 2"), (B1, 0, FOREIGN)],
    ),
    "the opening is deleted": (
        edit(M1, 3, deleted),
        [(M1, 3, "it claims to be record 3"), (B1, 0, FOREIGN)],
    ),
    "heads are deleted": (
        edit(M1, 4, deleted),
        [
            (M1, 4, "is not record 3"),
            # The line after it, which begins the second part, is not accepted either.
            (A1, 0, "ends after record 4; line 6 of the master chain has 8"),
            (A2, 0, FOREIGN),
        ],
    ),
    "the last of a part is changed": (edit(A1, 5, replaced), [(A1, 5, "is not record 4")]),
    "the end of the run is cut off": (
        edit(M1, 9, cut_off),
        [(M1, 0, "ends after 8 records; the journal has an anchor for 9")],
    ),
    "a run goes on after its end": (
        lambda files: files.update({M1: files[M1] + files[M1].splitlines(keepends=True)[-1]}),
        [(M1, 10, "is not record 9 as it was written; it claims to be record 8")],
    ),
    "a master chain takes another's place": (
        reread(M2, M1),
        [(M2, 1, "is not record 0"), (C1, 0, FOREIGN)],
    ),
    "a master chain is gone": (
        lambda files: files.pop(M2),
        [(M2, 0, "ends after 0 records; the journal has an anchor for 3"), (C1, 0, FOREIGN)],
    ),
    "all is written with another key": (
        rewritten,
        [(M1, 1, "is not record 0"), (A1, 0, FOREIGN)],
    ),
}


@pytest.mark.parametrize(("forge", "expected"), ATTACKS.values(), ids=ATTACKS.keys())
def test_tampering_is_found(
    world: World, forge: Forge, expected: list[tuple[str, int, str]]
) -> None:
    assert world.checked().findings == []  # of the untouched twin
    forge(world.files)
    found = world.checked().findings
    assert [(each.file, each.line) for each in found] == [(file, at) for file, at, _ in expected]
    for each, (_, _, what) in zip(found, expected, strict=True):
        assert what in each.what


def test_unchanged_records_are_counted(world: World) -> None:
    report = world.checked()
    assert (report.epochs, report.sessions, report.records) == (2, 3, 20)
    assert (report.findings, report.remarks) == ([], [])


def test_approval_answers_are_in_the_chain(world: World) -> None:
    world.gate.answered()
    world.gate.answered("refused")
    world.gate.rule_saved()
    world.gate.anchor()
    assert (world.checked().findings, world.checked().remarks) == ([], [])
    master = world.gate.path(records.MASTER)
    for before, after in (
        (b'"approved"', b'"refused"'), (b'"uid":1001', b'"uid":1000'), (b'"times":5', b'"times":9')
    ):  # fmt: skip
        honest = world.files[master]
        world.files[master] = honest.replace(before, after)
        assert world.checked().findings
        world.files[master] = honest


def test_each_flipped_bit_of_a_record_is_found(world: World) -> None:
    honest = world.files[C1]
    end_of_heads = len(b"".join(honest.splitlines(keepends=True)[:4]))
    for position in range(0, end_of_heads, 7):
        forged = bytearray(honest)
        forged[position] ^= 1 << position % 8
        world.files[C1] = bytes(forged)
        assert world.checked().findings


def test_a_removed_run_is_missed(world: World) -> None:
    for folder in ("00000001", "00000002"):
        assert world.checked(dropped=folder).findings == [
            AuditFinding(folder, 0, "the folder of a run of the gate is missing")
        ]
    # Root counts a third run; a fourth is in the journal, where a session's process may write.
    assert [f.file for f in world.checked(keys(3)).findings] == ["00000003"]
    world.gate.anchors.append(Anchor(4, 1, "00"))
    report = world.checked()
    assert report.findings == []
    assert report.remarks == [
        AuditFinding("journal", 0, "has 1 anchor of runs that never took place")
    ]


def test_a_run_that_could_not_begin_may_be_missing(world: World) -> None:
    report = world.checked(replace(keys(3), is_begun=False))
    assert report.findings == []
    assert [remark.file for remark in report.remarks if "had no session" in remark.what] == [
        "00000003"
    ]
    # Existing files are checked nevertheless, and earlier runs may not be missing.
    assert world.checked(replace(keys(2), is_begun=False), dropped="00000001").findings


class TestTheGatesOwnAccount:
    """Attacker with the gate's account: the current keys, and the files to write to."""

    def test_can_write_later_records(self, world: World) -> None:
        gate = world.gate
        gate.record(world.live, target="invented")
        other = gate.open("invented", uid=0)
        gate.record(other)
        gate.heads(world.live, other)
        gate.close(other)
        gate.end()
        assert world.checked().findings == []

    @pytest.mark.parametrize("line", [1, 2, 3, 4])
    def test_cannot_rewrite_an_earlier_record(self, world: World, line: int) -> None:
        """The chain is continued with the current key from an earlier record."""
        lines = world.files[C1].splitlines(keepends=True)
        forger = Chain(world.live.chain._key, line - 1)
        session = Session(world.live.id, forger, "sqlite", 1000)
        world.files[C1] = b"".join(lines[: line - 1])
        world.gate.record(session, times=4)
        first = world.checked().findings[0]
        assert (first.file, first.line) == (C1, line)

    @pytest.mark.parametrize("kept", [0, 1, 3])
    def test_cannot_remove_records_below_a_head(self, world: World, kept: int) -> None:
        edit(C1, kept + 1, cut_off)(world.files)
        assert [f.file for f in world.checked().findings] == [C1]
        # Nor with a smaller head afterwards: the earlier head stays.
        session = Session(world.live.id, Chain(bytes(32), kept, b"\0" * 16), "sqlite", 1000)
        world.gate.heads(session)
        assert [f.file for f in world.checked().findings] == [M2, C1]

    def test_cannot_remove_heads_below_an_anchor(self, world: World) -> None:
        edit(M2, 3, cut_off)(world.files)
        edit(C1, 3, cut_off)(world.files)
        assert world.checked().findings == [
            AuditFinding(M2, 0, "ends after 2 records; the journal has an anchor for 3")
        ]

    def test_can_remove_records_above_the_last_head(self, world: World) -> None:
        """This is why heads and anchors are written often."""
        edit(C1, 5, cut_off)(world.files)
        assert world.checked().findings == []
        world.gate.heads(Session(world.live.id, Chain(bytes(32), 9), "sqlite", 1000))
        assert world.checked().findings != []
        edit(M2, 4, cut_off)(world.files)
        assert world.checked().findings == []
        # But only at the end of a session: without its key the chain cannot be continued.
        world.gate.heads()
        assert [(f.file, f.line) for f in world.checked().findings] == [(M2, 4)]

    def test_cannot_rewrite_heads_below_an_anchor(self, world: World) -> None:
        edit(M2, 3, cut_off)(world.files)
        world.gate.chain = Chain(world.gate.chain._key, 2, Chain(ROOT_KEY).mac)
        world.gate.heads()
        assert [(f.file, f.line) for f in world.checked().findings] == [(M2, 3)]

    def test_an_earlier_key_of_a_session_cannot_change_records_below_a_later_head(
        self, world: World
    ) -> None:
        gate, live = world.gate, world.live
        stolen = Chain(live.chain._key, live.chain.count, live.chain.mac)
        before = world.files[C1]
        gate.record(live, times=2)
        gate.heads(live)
        gate.record(live)
        world.files[C1] = before
        gate.record(Session(live.id, stolen, "sqlite", 1000), times=3, decision="other")
        assert world.checked().findings == [
            AuditFinding(C1, 8, "is not the record that line 4 of the master chain has")
        ]

    def test_cannot_be_another_session_in_its_file(self, world: World) -> None:
        world.gate.record(world.live, server="fetch")
        world.gate.record(world.live, n=99)
        assert [f.what for f in world.checked().findings] == [
            "has another session, server or agent than its file",
            "has the number 99, but is record 7",
        ]

    def test_impossible_events_are_found(self, world: World) -> None:
        gate, live = world.gate, world.live
        number = gate.chain.count
        nothing = ChainHead(0, "")
        for event in (
            records.SessionOpened(n=number, at=gate.at(), session="2-1", server="s", uid=1, pid=1),
            records.SessionOpened(
                n=number + 1, at=gate.at(), session="2-../x", server="s", uid=1, pid=1
            ),
            records.SessionOpened(
                n=number + 2, at=gate.at(), session="1-2", server="s", uid=1, pid=1
            ),
            records.SessionClosed(n=number + 3, at=gate.at(), session="2-7", head=nothing),
            records.SessionClosed(n=number + 4, at=gate.at(), session="2-1", head=nothing),
            records.SessionPart(n=number + 5, at=gate.at(), session="2-8", part=2, head=nothing),
            records.SessionPart(
                n=number + 6, at=gate.at(), session="2-1", part=3, head=live.head()
            ),
            records.SessionPart(
                n=number + 7, at=gate.at(), session="2-1", part=2, head=ChainHead(10**12, "")
            ),
            records.EpochBegan(n=number + 8, at=gate.at(), epoch=3, boot="", version=""),
            records.EpochEnded(n=number + 9, at=gate.at()),
            records.PolicyInForce(n=number + 10, at=gate.at(), digest=""),
            # A name that is not a valid file name.
            records.SessionOpened(
                n=number + 11, at=gate.at(), session=f"2-{10**299}", server="s", uid=1, pid=1
            ),
        ):
            gate.write(event)
        assert [f.what for f in world.checked().findings if f.file == M2] == [
            "opens session '2-1': invalid or repeated name",
            "opens session '2-../x': invalid or repeated name",
            "opens session '1-2': invalid or repeated name",
            "has the head of session '2-7', which was not opened",
            "has a head of session 2-1 that contradicts an earlier one",
            "has the head of session '2-8', which was not opened",
            "begins file 3 of 2-1: impossible number or record count",
            "begins file 2 of 2-1: impossible number or record count",
            "a run begins with its start record, and has no other",
            "belongs to run 3",
            "comes after the end of the gate's run",
            "comes after the end of the gate's run",
            f"opens session '2-1{'0' * 253}...': invalid or repeated name",
        ]

    @pytest.mark.parametrize(("number", "findings"), [("9999999999", 0), ("10000000000", 1)])
    def test_cannot_give_a_session_a_long_number(
        self, world: World, number: str, findings: int
    ) -> None:
        gate = world.gate
        session = f"2-{number}"
        gate.write(
            records.SessionOpened(
                n=gate.chain.count, at=gate.at(), session=session, server="", uid=1, pid=1
            )
        )
        assert len(world.checked().findings) == findings

    def test_cannot_give_a_session_any_number_of_files(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verify_master, "_MAX_PARTS", 3)
        for part in (2, 3, 4):
            world.gate.next_part(world.live)
            found = [f.what for f in world.checked().findings if f.file == M2]
            assert found == (
                ["begins file 4 of 2-1: impossible number or record count"] if part == 4 else []
            )

    def test_false_claims_cost_bounded_time(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A claim costs a step for each record that would be missing."""
        monkeypatch.setattr(reader, "_MAX_LEAP", 100)
        steps: list[int] = []
        step = Chain._step

        def counted(chain: Chain) -> None:
            steps.append(1)
            step(chain)

        monkeypatch.setattr(Chain, "_step", counted)
        world.checked()
        honest = len(steps)
        for _ in range(50):  # the second line ends the guess of the first
            for mac in ("00" * 16, "no" * 16):
                world.gate.append("1-1.jsonl", b'{"n":100,"mac":"%s"}\n' % mac.encode())
        steps.clear()
        assert len(world.checked().findings) == 1
        assert len(steps) <= honest + 101

    def test_an_invalid_mac_is_found(self, world: World) -> None:
        gate, live = world.gate, world.live
        head = ChainHead(live.chain.count, "no hex")
        part = records.SessionPart(
            n=gate.chain.count, at=gate.at(), session=live.id, part=2, head=head
        )
        gate.write(part)
        live.part = 2
        gate.record(live)
        assert [(f.file, f.line) for f in world.checked().findings] == [(C1, 6)]
        del world.files[C1]  # so that no other chain continues
        assert [(f.file, f.line) for f in world.checked().findings] == [
            (C1, 0),
            ("00000002/1-2.jsonl", 1),
        ]

    def test_cannot_contradict_an_anchor(self, world: World) -> None:
        world.gate.anchors.append(Anchor(2, 2, "00"))
        assert world.checked().findings == [
            AuditFinding(M2, 2, "differs from the anchor in the journal")
        ]

    def test_cannot_replace_an_anchor(self, world: World) -> None:
        world.gate.anchors.append(Anchor(2, 3, "00"))
        what = "the journal has two different anchors for 3 records"
        assert world.checked().findings == [AuditFinding(M2, 0, what)]

    def test_an_unknown_format_is_found(self, world: World) -> None:
        gate = world.gate
        for record in (b'{"n":3}', b'{"x":"\xff"}', b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}"):
            line = gate.chain.line(record)
            gate.append("master.jsonl", line)
            gate.chain.advance(line)
        assert [f.what for f in world.checked().findings] == [
            "is authentic, but not in the format of this version of mcpwrap"
        ] * 3


class TestASessionOfTheGates:
    """Attacker in one session process, which may send to the journal as the unit does."""

    @pytest.mark.parametrize(
        "forged",
        [Anchor(1, 2, "00", 42), Anchor(1, 1, "00", 42), Anchor(1, 10**9, "00", 42)],
        ids=["another record", "another twin", "more records"],
    )
    def test_cannot_write_an_anchor(self, forged: Anchor) -> None:
        files: Files = {}
        gate = Gate(files, pid=41)
        gate.heads()
        gate.anchor()
        report = checked(files, [forged, *gate.anchors, forged])
        assert report.findings == []
        what = "the journal has 2 anchors from a process other than the monitor"
        assert report.remarks == [AuditFinding(M1, 0, what)]
        edit(M1, 2, cut_off)(files)  # the monitor's own anchors stay valid
        assert [f.file for f in checked(files, [forged, *gate.anchors]).findings] == [M1]

    @pytest.mark.parametrize(("late_s", "is_found"), [(-(10**9), 0), (60, 0), (62, 1), (10**10, 1)])
    def test_cannot_write_a_time_in_the_future(
        self, world: World, late_s: float, is_found: int
    ) -> None:
        gate, live = world.gate, world.live
        gate.heads(live)
        gate.record(live)
        told_at = gate.now + 3  # after two more records
        gate.record(live, times=2, at=told_at + late_s)
        gate.heads(live)
        gate.now += 3600
        gate.heads(live)
        found = [(f.file, f.line) for f in world.checked().findings]
        assert found == [(C1, 8)] * is_found

    def test_can_write_any_time_before_the_first_head(self, world: World) -> None:
        world.gate.record(world.live, at=T0 * 2)
        assert world.checked().findings == []
        world.gate.close(world.live)
        what = "s after line 4 of the master chain, which already has it"
        assert [what in f.what for f in world.checked().findings] == [True]

    def test_anchors_are_not_filtered_in_records_of_older_versions(self) -> None:
        files: Files = {}
        gate = Gate(files)
        assert checked(files, [*gate.anchors, Anchor(1, 1, "00", 42)]).findings != []


class TestAJournalThatDropsAnchors:
    """Lost anchors, as when journald drops messages above its rate limit."""

    @pytest.mark.parametrize(
        ("later_s", "now_s", "runs", "remarks"),
        [
            (50, 55, 1, 0),
            (60, 60, 1, 0),
            (61, 61, 1, 1),
            (61, 61, 2, 1),
            (5, 61, 1, 1),  # no later record, and the anchor of this one is overdue
            (5, 10**6, 2, 0),  # the gate was killed before it wrote one
        ],
    )
    def test_lost_anchors_are_a_remark(
        self, later_s: int, now_s: int, runs: int, remarks: int
    ) -> None:
        files: Files = {}
        gate = Gate(files)
        gate.anchor()
        gate.now += 3600  # no record in that time
        gate.heads()
        at = gate.now
        gate.now = at + later_s - 1
        gate.heads()
        if runs == 2:
            Gate(files, epoch=2)
        report = checked(files, gate.anchors, keys(runs), now=at + now_s)
        assert report.findings == []
        later = "the removal of later records would not be detected"
        what = f"no anchor in the journal after record 0: {later}"
        assert [r for r in report.remarks if r.what == what] == [
            AuditFinding(M1, 0, what)
        ] * remarks
        gate.anchors.append(Anchor(1, 3, gate.chain.mac.hex()))
        report = checked(files, gate.anchors, keys(runs), now=at + now_s)
        assert what not in [r.what for r in report.remarks]

    def test_a_clock_that_is_set_is_not_a_lost_anchor(self) -> None:
        files: Files = {}
        gate = Gate(files)
        for up, at in ((5.0, 0.0), (6.0, T0)):
            gate.write(records.SessionHeads(n=gate.chain.count, at=at, up=up, heads={}))
        report = checked(files, gate.anchors, now=0.0)
        assert [r.what for r in report.remarks] == [f"the clock was set back by {T0:.0f} s"]

    def test_lost_anchors_do_not_matter_after_the_end_record(self) -> None:
        """Its last record is there, and so no record is missing."""
        files: Files = {}
        gate = Gate(files)
        gate.heads()
        gate.now += 3600
        gate.end()
        assert checked(files, gate.anchors[:1], now=T0 * 2).remarks == []


class TestWhatAnHonestGateLeaves:
    """Honest audits have no finding, and a remark if something is unusual."""

    def test_a_session_that_was_killed_between_writing_and_counting(self, world: World) -> None:
        gate, live = world.gate, world.live
        counted = live.head()
        gate.record(live)
        gate.close(live, counted)
        report = world.checked()
        assert report.findings == []
        assert [(r.file, "before it counted it" in r.what) for r in report.remarks] == [(C1, True)]
        gate.record(live)
        assert world.checked().findings == [
            AuditFinding(C1, 0, "continues to record 7; line 4 of the master chain has 6 records")
        ]

    def test_a_gate_that_was_killed(self, world: World) -> None:
        third = Gate(world.files, epoch=3)
        report = checked(world.files, [*world.anchors, *third.anchors], keys(3))
        assert report.findings == []
        assert [(r.file, r.what.partition(",")[0]) for r in report.remarks] == [
            ("00000002", "this run has no end record: the gate was killed"),
            (C1, "the session was not closed"),
        ]
        edit(C1, 4, cut_off)(world.files)
        assert [f.file for f in checked(world.files, (), keys(3)).findings] == [C1]

    def test_a_gate_that_wrote_nothing(self, world: World) -> None:
        world.files["00000003/master.jsonl"] = b""
        report = world.checked(keys(3))
        assert report.findings == []
        assert "this run of the gate recorded nothing" in report.remarks[-1].what
        assert "was killed" in report.remarks[0].what  # the second

    def test_a_session_without_heads(self, world: World) -> None:
        world.gate.open()
        assert world.checked() == checked(world.files, world.anchors, keys(2))
        del world.files["00000002/2-1.jsonl"]
        report = world.checked()
        assert report.findings == []
        assert [r.file for r in report.remarks] == ["00000002/2-1.jsonl"]

    def test_a_session_without_a_record(self, world: World) -> None:
        other = world.gate.open()
        world.gate.heads(other)
        world.gate.close(other, ChainHead(0, ""))
        assert world.checked().remarks == world.checked().findings == []
        del world.files["00000002/2-1.jsonl"]
        assert world.checked().findings == world.checked().remarks == []

    def test_a_journal_without_anchors(self, world: World) -> None:
        report = checked(world.files, (), keys(2))
        assert report.findings == []
        assert report.remarks == [  # a run that has ended cannot have lost its end
            AuditFinding(
                M2,
                0,
                "the journal has no anchor: the removal of the last lines would not be detected",
            )
        ]

    def test_a_clock_that_is_set_back(self, world: World) -> None:
        world.gate.now -= 4
        world.gate.heads(world.live)
        assert world.checked().remarks == []
        world.gate.now -= 3600
        world.gate.heads(world.live)
        assert [(r.file, r.line, r.what) for r in world.checked().remarks] == [
            (M2, 5, "the clock was set back by 3599 s")
        ]
        assert world.checked().findings == []

    def test_a_record_from_before_the_clock_was_set_back(self) -> None:
        """The uptime bounds how late it can have been."""
        files: Files = {}
        gate = Gate(files)
        session = gate.open()
        gate.write(records.SessionHeads(n=gate.chain.count, at=gate.at(), up=100, heads={}))
        gate.now += 600
        gate.record(session)
        for later_s, findings in ((700, 0), (500, 1)):
            kept, chain = dict(files), gate.chain
            gate.chain = Chain(chain._key, chain.count, chain.mac)
            told = {session.id: session.head()}
            heads = records.SessionHeads(
                n=chain.count, at=gate.now - 3600, up=100 + later_s, heads=told
            )
            gate.write(heads)
            assert len(checked(files).findings) == findings
            gate.chain = chain
            files.clear()
            files.update(kept)

    def test_records_that_are_written_meanwhile(self, world: World) -> None:
        """The gate writes during the verification: the master chain is read first."""
        gate, live = world.gate, world.live
        before = world.files[M2]
        gate.record(live, times=3)
        gate.heads(live)
        gate.next_part(live)
        gate.record(live)
        world.files[M2] = before
        del world.files["00000002/1-2.jsonl"]  # listed before it was made
        assert world.checked().findings == []


class TestAFullDisk:
    """Torn lines of a full disk, the size of which the next record states."""

    @pytest.mark.parametrize(
        ("between", "told"),
        [
            (b"{12", 3),
            (b"{12!", 4),  # the mark and nothing else
            (b"{12!\n", 5),
            (b"{12!\n{", 6),
            (b"{12!\n!\n{1234", 12),
            (b"!", 1),  # not possible in a line, and harmless
        ],
    )
    def test_in_the_middle_of_a_file(self, world: World, between: bytes, told: int) -> None:
        gate, live = world.gate, world.live
        gate.append("1-1.jsonl", between + b"!\n")
        honest = dict(world.files)
        gate.record(live, torn=told, unrecorded=2)
        assert world.checked().findings == []
        world.files[C1] = honest[C1].replace(between + b"!\n", b"") + world.files[C1][-300:]
        assert world.checked().findings

    @pytest.mark.parametrize("more", [-1, 1])
    def test_and_not_otherwise(self, world: World, more: int) -> None:
        world.gate.append("1-1.jsonl", b"{12!\n")
        world.gate.record(world.live, torn=3 + more)
        assert [(f.file, f.line) for f in world.checked().findings] == [(C1, 8)]

    def test_in_the_master_chain(self, world: World) -> None:
        gate = world.gate
        gate.append("master.jsonl", b'{"what!\n')
        gate.write(records.EpochEnded(n=gate.chain.count, at=gate.at(), torn=6))
        assert world.checked().findings == []

    @pytest.mark.parametrize("rest", [b'{"n":6', b"!", b"{!\n", b'{!\n{"n"'])
    def test_at_the_end_of_a_session(self, world: World, rest: bytes) -> None:
        head = world.live.head()
        world.gate.append("1-1.jsonl", rest)
        world.gate.close(world.live, head)
        report = world.checked()
        assert report.findings == []
        assert [(r.file, f"last {len(rest)} bytes" in r.what) for r in report.remarks] == [
            (C1, True)
        ]

    def test_at_the_end_of_a_part(self, world: World) -> None:
        world.gate.append("1-1.jsonl", b"{")
        world.gate.next_part(world.live)
        world.gate.record(world.live)
        assert world.checked().findings == []


class TestRemoval:
    """Removed files of sessions that had ended before the time that root has recorded."""

    @pytest.mark.parametrize(
        ("gone", "before", "missed"),
        [
            ([A1], T0 + 100, []),
            ([A2, B1], T0 + 100, []),
            ([A1, A2, B1], T0 + 100, []),
            ([A1, A2], T0, [A1, A2]),
            ([A1, A2], T0 + 16, [A2]),  # after the end of the first part, before that of the second
        ],
    )
    def test_of_ended_sessions(
        self, world: World, gone: list[str], before: float, missed: list[str]
    ) -> None:
        for path in gone:
            del world.files[path]
        found = world.checked(keys(2, removed_before=before)).findings
        assert [f.file for f in found] == missed

    def test_remaining_files_are_checked(self, world: World) -> None:
        del world.files[A1]
        edit(A2, 2, replaced)(world.files)
        found = world.checked(keys(2, removed_before=T0 + 100)).findings
        assert [(f.file, f.line) for f in found] == [(A2, 2)]

    def test_not_of_open_sessions(self, world: World) -> None:
        del world.files[C1]
        assert [f.file for f in world.checked(keys(2, removed_before=T0 * 2)).findings] == [C1]

    def test_of_sessions_that_a_killed_gate_left_open(self, world: World) -> None:
        del world.files[C1]
        Gate(world.files, epoch=3)
        assert world.checked(keys(3, removed_before=T0 * 2)).findings == []
        assert [f.file for f in world.checked(keys(3, removed_before=T0)).findings] == [C1]

    def test_not_by_a_time_that_an_attacker_wrote(self, world: World) -> None:
        """An attacker with the current key writes that earlier sessions ended long ago."""
        world.gate.now = 0
        world.gate.close(world.live)
        del world.files[C1]
        found = world.checked(keys(2, removed_before=T0 + 10_000)).findings
        assert [f.file for f in found] == [C1]

    def test_of_whole_runs(self, world: World) -> None:
        known = keys(2, first_epoch=2)
        assert world.checked(known, dropped="00000001").findings == []
        report = world.checked(known)
        assert report.findings == []
        assert report.remarks == [
            AuditFinding("00000001", 0, "was marked for removal, and is not checked")
        ]


def test_the_gates_writer_follows_the_format(world: World) -> None:
    last = world.files[M1].splitlines()[-1]
    assert decode_event(last) == records.EpochEnded(n=8, at=T0 + 22)
    assert encode(decode_event(last)) in last.replace(b',"mac"', b'}"mac"')
