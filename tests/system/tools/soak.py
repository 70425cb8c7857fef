"""`make soak`: sessions of all kinds under random faults, and a report of each call's outcome.

RUNS AS ROOT on the host, which it leaves as it was. Options: MINUTES=20 SEED=7, and FAULTS="kill
gate,kill supervisor" for faults of these kinds alone. The same options give the same schedule.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from tests.system.bed import roots
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.guest.soak.model import FAULTS, PROCESSES
from tests.system.support.soak import chart, judging, machine, report, schedule
from tests.system.support.soak.judging import Judgement
from tests.system.support.soak.report import Run, Wanted

DIST = Path(__file__).resolve().parents[3] / "dist"
JOURNAL = "journalctl --sync; journalctl -b -o json --no-pager"
FIELDS = "MESSAGE,_SYSTEMD_UNIT,SYSLOG_IDENTIFIER,PRIORITY"


def soak(wanted: Wanted, folder: Path) -> int:
    """Run it; write the report into a folder; return the exit status."""
    plan = schedule.planned(wanted.minutes, wanted.seed, wanted.faults)
    with machine.prepared(wanted.suite, Profile.LIMITS) as bed:
        machine.begin(bed)
        began_s = machine.play(bed, plan)
        until_s = began_s + wanted.minutes * 60
        machine.await_end_of(bed, ["faults"], until_s)
        time.sleep(max(0.0, until_s - time.monotonic()))
        machine.end(bed)
        machine.await_end_of(bed, tuple(PROCESSES), time.monotonic())
        judgement = judging.judged(machine.calls(bed), machine.faults(bed), machine.recorded(bed))
        run = _run(bed, wanted, began_s)
        _write(bed, folder, run, judgement)
    return exit_status(run, judgement)


def exit_status(run: Run, judgement: Judgement) -> int:
    """Return 0 if each failure is explained and each answered call is in an audit that verifies."""
    return 0 if report.is_good(run, judgement) else 1


def _run(bed: Machine, wanted: Wanted, began_s: float) -> Run:
    """Return the notes on the run beside its judgement."""
    verify = bed.look("mcpwrap audit verify 2>&1; echo $?").splitlines()
    found = bed.look(f"{JOURNAL} --output-fields={FIELDS}")
    journal = [json.loads(line) for line in found.splitlines()]
    status = int(verify.pop())
    return Run(wanted, began_s, verify[-1] if verify else "", status, journal)


def _write(bed: Machine, folder: Path, run: Run, judgement: Judgement) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    machine.keep(bed, folder)
    (folder / "memory.svg").write_text(_memory(machine.samples(bed), run.began_s))
    (folder / "report.md").write_text(report.text(run, judgement))
    lines = (json.dumps(entry) + "\n" for entry in run.journal)
    (folder / "journal.jsonl").write_text("".join(lines))


def _memory(samples: Sequence[dict[str, object]], began_s: float) -> str:
    """Return the chart of the memory by daemon, in MiB."""
    series: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        at_s, by_name = sample["at_s"], sample["bytes"]
        assert isinstance(at_s, float)
        assert isinstance(by_name, dict)
        for name, size_bytes in by_name.items():
            if name != "servers":  # not mcpwrap's
                series.setdefault(name, []).append((at_s - began_s, size_bytes / 1024**2))
    return chart.lines("Memory by daemon (proportional set size)", "MiB", series)


def _faults(text: str) -> tuple[str, ...]:
    """Return the kinds of faults that the option names.

    Raises:
        argparse.ArgumentTypeError: there is no such kind.
    """
    found = tuple(name.strip() for name in text.split(","))
    if unknown := set(found) - set(FAULTS):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: write some of {', '.join(FAULTS)}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10_000)
    parser.add_argument("--faults", type=_faults, default=tuple(FAULTS))
    parser.add_argument("--suite", choices=roots.SUITES, default=roots.SUITES[0])
    options = parser.parse_args()
    roots.need_root("make soak")
    wanted = Wanted(options.suite, options.minutes, options.seed, options.faults)
    folder = DIST / f"soak-{options.seed}"
    status = soak(wanted, folder)
    print(f"\n{folder / 'report.md'}")
    raise SystemExit(status)


if __name__ == "__main__":
    main()
