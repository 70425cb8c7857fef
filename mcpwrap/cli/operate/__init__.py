"""RUNS AS WHOEVER TYPED IT: operation: status, doctor, sessions, kill, panic, stats."""
