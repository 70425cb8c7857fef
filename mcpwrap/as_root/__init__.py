"""RUNS AS ROOT, ONCE: reads root's own files, carries out steps, exits. It has no listener.

Only `mcpwrap-watch.service` goes on running.
"""
