"""Properties are tried the same way everywhere, also in a tree that cannot be written to."""

from hypothesis import settings

settings.register_profile("unit", database=None, deadline=None)
settings.load_profile("unit")
