"""Code that `mcpwrap doctor` has a Python server execute, by the name of the attempt."""

PRINT = "print(1)"
# RFC 5737: no host has this address. A run without network is refused the socket.
CONNECT = """\
import socket
try:
    socket.create_connection(("192.0.2.1", 443), 3).close()
except TimeoutError:
    print("sent")
except OSError as error:
    print(error.errno, error.strerror)
else:
    print("sent")
"""
CODE_BY_ATTEMPT = {"print": PRINT, "connect": CONNECT}
