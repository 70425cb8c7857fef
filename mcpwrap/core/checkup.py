"""Check results of `mcpwrap doctor`: one line each, with a fix."""

from typing import Literal

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check. `--json` prints a list of these."""

    what: str
    state: Literal["good", "warning", "failed", "unknown"]
    found: str
    fix: str = ""


def good(what: str, found: str) -> Check:
    """Return a check that found what should be."""
    return Check(what=what, state="good", found=found)


def warned(what: str, found: str, fix: str) -> Check:
    """Return a check that found something to know, with which servers work."""
    return Check(what=what, state="warning", found=found, fix=fix)


def failed(what: str, found: str, fix: str) -> Check:
    """Return a check that found something broken, or open."""
    return Check(what=what, state="failed", found=found, fix=fix)


def unknown(what: str, why: str, fix: str) -> Check:
    """Return a check that could not be made, which is no verdict either way."""
    return Check(what=what, state="unknown", found=f"could not be checked: {why}", fix=fix)
