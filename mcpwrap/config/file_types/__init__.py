"""PURE: types of what a configuration file may contain, from which its parser has its keys."""
