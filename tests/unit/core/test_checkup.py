"""Findings of `doctor`: each with a fix if there is something to do."""

import msgspec

from mcpwrap.core.doctor import failed, good, unknown, warned


def test_checks_are_written_for_machines_as_they_are() -> None:
    found = [good("Squid", "5.7"), warned("accounts", "a", "b"), failed("kernel", "c", "d")]
    found.append(unknown("watch", "e", "f"))
    assert msgspec.to_builtins(found) == [
        {"what": "Squid", "state": "good", "found": "5.7", "fix": ""},
        {"what": "accounts", "state": "warning", "found": "a", "fix": "b"},
        {"what": "kernel", "state": "failed", "found": "c", "fix": "d"},
        {"what": "watch", "state": "unknown", "found": "could not be checked: e", "fix": "f"},
    ]
