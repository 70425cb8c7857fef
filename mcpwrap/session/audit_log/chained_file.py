"""Append-only file of hash-chained records; a full disk can truncate its last line."""

import os

from mcpwrap.core.audit.hash_chain import Chain

_CUT = b"!\n"  # ends an unfinished line: see core/audit/records.py


class ChainedFile:
    """End of a hash chain, and the file to which its records are written."""

    def __init__(self, fd: int, chain: Chain) -> None:
        """`fd` is open for appending only."""
        self._fd = fd
        self.chain = chain
        self.size = 0  # bytes, written by this process
        self.torn = (
            0  # bytes of unfinished lines after the last record, for the next record to report
        )

    def append(self, record: bytes) -> bool:
        """Write a record with one call of write(2); return whether all of it was written.

        It is not flushed to the disk: anchors in the journal show what a power failure lost.
        """
        line = self.chain.line(record)
        data = _CUT + line if self.torn else line
        try:
            done = os.write(self._fd, data)
        except OSError:
            done = 0
        self.size += done
        if done < len(data):
            self.torn += done
            return False
        self.torn = 0
        self.chain.advance(line)
        return True

    def go_on_in(self, fd: int) -> None:
        """Write the next records to another file. The last line must be complete."""
        os.close(self._fd)
        self._fd, self.size = fd, 0
