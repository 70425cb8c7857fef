"""systemd: systemctl, journal, readiness notification, socket activation."""
