"""Mounts: mountinfo, ID-mapped mounts, the mount API of mount_setattr(2)."""
