"""Stories of the fast tier that took over 30 s, as recorded. A part of `make check`."""

from tests.system.support import durations
from tests.system.support.tiers import FAST
from tests.system.tools import proofs


def main() -> None:
    """Print them."""
    fast = {durations.case_of(nodeid) for nodeid in proofs.collected_cases(FAST)}
    took = {case: s for case, s in durations.recorded().items() if case in fast}
    slow = {story: s for story, s in durations.by_story(took).items() if s > durations.SLOW_S}
    print(f"{len(slow)} stories of `make test` take over {durations.SLOW_S:.0f} s")
    for story, seconds in slow.items():
        print(f"{seconds:7.1f} s  {story}")


if __name__ == "__main__":
    main()
