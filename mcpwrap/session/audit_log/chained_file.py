"""Append-only file of hash-chained records, whose last line may be cut off by a full disk."""

import os

from mcpwrap.core.audit.hash_chain import Chain

_CUT = b"!\n"  # see core/audit/records.py: what follows a line that was begun


class ChainedFile:
    """End of a hash chain, and the file to which it is written."""

    def __init__(self, fd: int, chain: Chain) -> None:
        """`fd` is open for appending alone."""
        self._fd = fd
        self.chain = chain
        self.size = 0  # bytes, written by this process
        self.torn = 0  # bytes after the last record that are none; the next record has to say so

    def append(self, record: bytes) -> bool:
        """Write a record, in one call of write(2); say whether all of it is written.

        It is not flushed to the disk: what is lost with the power, anchors in the journal show.
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
        """Write what comes next to another file. Nothing may be torn."""
        os.close(self._fd)
        self._fd, self.size = fd, 0
