"""Namespaces, Landlock, cgroups, prctl(2), and dropping privileges."""
