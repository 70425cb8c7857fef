"""Project of a session: found beneath the listed folders, shown alone in a mount namespace."""
