"""Isolation of processes: namespaces, Landlock, cgroups, prctl(2), drop of root privileges."""
