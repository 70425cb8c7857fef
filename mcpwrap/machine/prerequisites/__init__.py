"""Prerequisites of `apply`: kernel mechanisms, tried in throw-away objects; SELinux labels."""
