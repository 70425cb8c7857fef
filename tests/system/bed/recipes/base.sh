# Inside a fresh Debian root: make it bootable as a quiet container. The packages are listed at the end.
set -eu
# No resolver: machines have no network but their own.
rm -f /etc/resolv.conf
# Empty, so that each machine draws its own at boot.
: > /etc/machine-id
echo bed > /etc/hostname
# Only root changes the sources again: packages come from the cache of the layer, not from a network.
for unit in systemd-timesyncd.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    getty.target console-getty.service e2scrub_all.timer fstrim.timer logrotate.timer; do
    systemctl mask -q "$unit" 2>/dev/null || true
done
# Squid is there and switched off: what mcpwrap starts is an instance of its own.
systemctl disable -q squid.service
# Agents are people: plain accounts with a home, as useradd makes them.
exit 0
#!packages
systemd systemd-sysv dbus ca-certificates init-system-helpers passwd procps iproute2 util-linux
python3 python3-nacl python3-prctl python3-sdnotify nftables nodejs git strace iputils-ping python3-venv
squid-openssl openssl curl tmux
