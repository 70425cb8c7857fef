"""RUNS AS THE CALLER: status, doctor, sessions, kill, panic, egress, stats, score, units."""
