"""Server that answers each line with the line itself. Runs inside the machine."""

import sys

for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
