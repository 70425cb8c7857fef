"""Retention of the audit: old files that may be removed after a verification without findings."""

import re
from collections.abc import Mapping
from math import inf

from mcpwrap.core.audit.records import MASTER, MAX_NUMBER_DIGITS, MAX_PART_DIGITS, Keys, folder_of

_SESSION = rf"[0-9]{{1,{MAX_NUMBER_DIGITS}}}-[0-9]{{1,{MAX_PART_DIGITS}}}"
_OURS = re.compile(rf"(?:{_SESSION}|master)\.jsonl")


def old_files(
    keys: Keys,
    names_by_folder: Mapping[str, frozenset[str]],
    over_at: Mapping[str, float],
    before: float,
) -> list[str]:
    """Return the files that may be removed, as EPOCH/NAME: those that ended before that time.

    `over_at` is that of the verification's report. A file that is not in it may still grow, or does
    not belong to the audit.
    """
    first = first_to_stay(keys, over_at, before)
    found = []
    for epoch in range(1, keys.epochs + 1):
        folder = folder_of(epoch)
        for name in sorted(filter(_OURS.fullmatch, names_by_folder.get(folder, ()))):
            path = f"{folder}/{name}"
            is_noted = epoch < keys.first_epoch  # as removed by root, which did not finish
            is_old = over_at.get(path, inf) < before and (name != MASTER or epoch < first)
            if is_noted or is_old:
                found.append(path)
    return found


def first_to_stay(keys: Keys, over_at: Mapping[str, float], before: float) -> int:
    """Return the first run of the gate that is not removed as a whole, with its master chain.

    Runs are removed in order, since root stores one number only. The last stays: it shows how far
    the audit goes.
    """
    epoch = keys.first_epoch
    while epoch < keys.epochs and over_at.get(f"{folder_of(epoch)}/{MASTER}", inf) < before:
        epoch += 1
    return epoch
