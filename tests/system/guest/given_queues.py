"""Message queues given to UIDs and GIDs of others. Runs inside, as any account.

Arguments: the first id and the number; each queue takes two. Source: msgctl(2), IPC_SET; the layout
of struct msqid_ds is that of x86-64 and arm64, <asm-generic/msgbuf.h>.
"""

import ctypes
import os
import sys

IPC_PRIVATE, IPC_SET, IPC_STAT = 0, 1, 2
OWNER_AT, DS_LONGS = 4, 32  # after the key: uid, then gid

libc = ctypes.CDLL(None, use_errno=True)


def give(uid: int, gid: int) -> None:
    """Make a queue and give it away."""
    queue = libc.msgget(IPC_PRIVATE, 0o600)
    status = (ctypes.c_ulong * DS_LONGS)()
    is_known = queue >= 0 and libc.msgctl(queue, IPC_STAT, status) == 0
    owner = (ctypes.c_uint * 2).from_buffer(status, OWNER_AT)
    owner[:] = [uid, gid]
    if not is_known or libc.msgctl(queue, IPC_SET, status) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    for number in range(first, first + count, 2):
        give(number, number + 1)
