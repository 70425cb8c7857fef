"""Forward-secure hash chain of records, each authenticated by a key that is erased after use.

    mac(n)   = BLAKE2b(key(n), mac(n-1) ‖ record(n))       16 bytes
    key(n+1) = BLAKE2b(key(n))                              32 bytes

An attacker who takes key(n) can write later records, but cannot change earlier ones; the holder of
key(0) can verify all. Source: Schneier and Kelsey, "Secure Audit Logs to Support Computer
Forensics", 1999; BLAKE2 is RFC 7693.
"""

import hmac
from collections.abc import Callable
from hashlib import blake2b

KEY_BYTES = 32
MAC_BYTES = 16
NO_MAC = bytes(MAC_BYTES)  # before the first record
_BEFORE_MAC = b',"mac":"'
_AFTER_MAC = b'"}\n'
_TAIL_BYTES = len(_BEFORE_MAC) + 2 * MAC_BYTES + len(_AFTER_MAC)
_RATCHET = b"mcpwrap ratchet"


def derived(key: bytes | bytearray, purpose: str) -> bytes:
    """Return a key for one purpose, from which `key` cannot be computed."""
    return blake2b(
        purpose.encode(), key=key, digest_size=KEY_BYTES, person=b"mcpwrap derive"
    ).digest()


class Chain:
    """End of one chain: `count` records were written, the last with `mac`."""

    def __init__(
        self,
        key: bytes | bytearray,
        count: int = 0,
        mac: bytes = NO_MAC,
        wipe: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        """`key` is that of the next record; `wipe` overwrites a key that was used."""
        self._key = bytearray(key)
        self._wipe = wipe
        self.count = count
        self.mac = mac

    def line(self, record: bytes) -> bytes:
        """Return the line to write for the next record, a JSON object of at least one member."""
        mac = self._mac(record).hex().encode()
        return record[:-1] + _BEFORE_MAC + mac + _AFTER_MAC

    def advance(self, line: bytes) -> None:
        """Advance past a record whose `line` was written, and erase its key."""
        self.mac = mac_of(line)
        self._step()

    def accepts(self, line: bytes) -> bool:
        """Return whether this line is the next record, unchanged; if so, advance past it."""
        if len(line) <= _TAIL_BYTES or line[-_TAIL_BYTES:][: len(_BEFORE_MAC)] != _BEFORE_MAC:
            return False
        wanted = self.line(line[:-_TAIL_BYTES] + b"}")
        if not hmac.compare_digest(line, wanted):
            return False
        self.advance(line)
        return True

    def after(self, count: int, mac: bytes) -> "Chain":
        """Return the chain after `count` records in all, of which the last has `mac`, unverified.

        Raises:
            ValueError: the chain already has more records.
        """
        if count < self.count:
            raise ValueError(f"the chain already has {self.count} records")
        later = Chain(self._key, self.count, mac)
        while later.count < count:
            later._step()
        return later

    def child_key(self, purpose: str) -> bytearray:
        """Return the key of a chain that begins at this point of this chain."""
        new = derived(self._key, purpose)
        key = bytearray(new)
        self._wipe(new)
        return key

    def forget(self) -> None:
        """Erase the key, so that this process cannot write more records."""
        self._key[:] = bytes(KEY_BYTES)

    def _step(self) -> None:
        self.count += 1
        new = blake2b(self._key, digest_size=KEY_BYTES, person=_RATCHET).digest()
        self._key[:] = new
        self._wipe(new)

    def _mac(self, record: bytes) -> bytes:
        return blake2b(self.mac + record, key=self._key, digest_size=MAC_BYTES).digest()


def mac_of(line: bytes) -> bytes:
    """Return the MAC in a line, unverified.

    Raises:
        ValueError: the line has no MAC.
    """
    return bytes.fromhex(line[-len(_AFTER_MAC) - 2 * MAC_BYTES : -len(_AFTER_MAC)].decode("ascii"))


def record_of(line: bytes) -> bytes:
    """Return the JSON object in a line, without its MAC."""
    return line[:-_TAIL_BYTES] + b"}"
