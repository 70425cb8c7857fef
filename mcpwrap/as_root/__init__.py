"""RUNS AS ROOT, ONCE: programs that read root's own files, change the machine, and exit.

None listens on a socket. Only `mcpwrap-watch.service` runs all the time.
"""
