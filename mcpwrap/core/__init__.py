"""PURE: values in, values out. Names, wire formats and decisions, without I/O or clocks."""
