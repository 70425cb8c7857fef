"""Which stories of the fast tier take over 30 s, as recorded. A part of `make check`."""

from tests.system.support import durations
from tests.system.support.tiers import FAST
from tests.system.tools import proofs


def main() -> None:
    """Print them."""
    fast = {durations.story_of(case) for case in proofs.collected_cases(FAST)}
    slow = [
        (seconds, story)
        for story, seconds in durations.recorded().items()
        if seconds > durations.SLOW_S and story in fast
    ]
    print(f"{len(slow)} stories of `make test` take over {durations.SLOW_S:.0f} s")
    for seconds, story in sorted(slow, reverse=True):
        print(f"{seconds:7.1f} s  {story}")


if __name__ == "__main__":
    main()
