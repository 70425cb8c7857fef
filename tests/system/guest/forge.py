"""Forger of a start's secrets and capability. Runs in the machine, as root, after the mint.

Its plan is in /opt/forge.json: a list of steps, each the name of a function below and its values.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from mcpwrap.as_root.secrets import store
from mcpwrap.core.secrets import capability as caps
from mcpwrap.linux import clocks

Json = dict[str, Any]
PLAN = Path("/opt/forge.json")
FILES = {
    "capability": Path("/run/mcpwrap/mint/vault"),
    "bundle": Path("/run/mcpwrap/bundle/vault/bundle"),
    "other's capability": Path("/run/mcpwrap/mint/other"),
    "other's bundle": Path("/run/mcpwrap/bundle/other/bundle"),
}
EARLIER = Path("/run/earlier")
KEYS = ("FILE", "KEY", "TOKEN")


def give(
    start_age_s: int = 0,
    bundle_age_s: int = 0,
    boot_age_s: int = 0,
    name: str = "vault",
    keys: Sequence[str] = KEYS,
) -> None:
    """Write the files of `mcpwrap-mint start vault`, or a variant; ages are by one clock each."""
    real = clocks.now()
    now = replace(real, boot_s=real.boot_s - boot_age_s)
    random = caps.Randomness(os.urandom(8).hex(), os.urandom(32))
    start_at = replace(now, wall=now.wall - timedelta(seconds=start_age_s))
    minted = caps.mint("vault", os.environ["INVOCATION_ID"], random, start_at)
    FILES["capability"].write_text(caps.encode(minted))
    values = store.take("vault", list(keys))
    nonces = [os.urandom(24) for _ in values]
    labelled = caps.mint(name, minted.invocation_id, random, start_at)
    bundle_at = replace(real, wall=real.wall - timedelta(seconds=bundle_age_s))
    FILES["bundle"].write_text(caps.encode(caps.bundle(labelled, values, nonces, bundle_at)))


def keep() -> None:
    """Keep the files of this start, for `replay`."""
    EARLIER.mkdir(exist_ok=True)
    for file in ("capability", "bundle"):
        shutil.copy(FILES[file], EARLIER / file)


def replay(file: str) -> None:
    """Write the files of an earlier start."""
    shutil.copyfile(EARLIER / file, FILES[file])


def take(file: str) -> None:
    """Write the files of the server `other`."""
    shutil.copyfile(FILES[f"other's {file}"], FILES[file])


def empty(file: str) -> None:
    FILES[file].write_text("")


def remove(file: str) -> None:
    FILES[file].unlink()


def cut(file: str, part: float) -> None:
    """Keep this part of a file, and cut off the rest."""
    text = FILES[file].read_text()
    FILES[file].write_text(text[: int(len(text) * part)])


def append(file: str, text: str) -> None:
    FILES[file].write_text(FILES[file].read_text() + text)


def flip_text(file: str, field: str) -> None:
    """Flip a bit of the last character of a field."""

    def change(record: Json) -> None:
        text = record[field]
        record[field] = text[:-1] + chr(ord(text[-1]) ^ 1)

    _edit(FILES[file], change)


def flip_byte(file: str, field: str, at: float) -> None:
    """Flip a bit of one byte of a field in hexadecimal; 1.0 is the last byte."""

    def change(record: Json) -> None:
        raw = bytearray.fromhex(record[field])
        raw[int(at * (len(raw) - 1))] ^= 1
        record[field] = raw.hex()

    _edit(FILES[file], change)


def expire_sooner(file: str, field: str) -> None:
    """Let it expire a second sooner, by the clock that the field belongs to."""

    def change(record: Json) -> None:
        value = record[field]
        if isinstance(value, int):
            record[field] = value - 1
        else:
            record[field] = (datetime.fromisoformat(value) - timedelta(seconds=1)).isoformat()

    _edit(FILES[file], change)


def raise_version() -> None:
    """Raise the version of the TOKEN in the bundle."""

    def change(record: Json) -> None:
        record["version"] += 1

    _edit(FILES["bundle"], change)


def _edit(path: Path, change: Callable[[Json], None]) -> None:
    """Change the capability, or the sealed TOKEN of a bundle; the rest keeps its bytes."""
    text = path.read_text()
    record = json.loads(text)
    assert text == _encoded(record)
    change(next((each for each in record.get("secrets", []) if each["key"] == "TOKEN"), record))
    path.write_text(_encoded(record))


def _encoded(record: Json) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


STEPS: dict[str, Callable[..., None]] = {
    step.__name__: step
    for step in (
        append, cut, empty, expire_sooner, flip_byte, flip_text, give, keep, raise_version, remove,
        replay, take,
    )
}  # fmt: skip


def carry_out() -> None:
    """Carry out the plan of the test."""
    os.umask(0o022)
    for name, values in json.loads(PLAN.read_text()):
        STEPS[name](**values)
