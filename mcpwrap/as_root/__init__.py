"""RUNS AS ROOT, ONCE: reads root's own files, carries out steps, exits. Listens to nobody."""
