"""RUNS AS ROOT, ONCE: programs that read root's own files, change the machine, and exit.

None listens. Only `mcpwrap-watch.service` goes on running.
"""
