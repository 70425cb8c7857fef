#!/bin/sh
# Install the host packages that the test bed needs, if they are missing. RUNS AS ROOT on a Debian machine.
set -eu
wanted="mmdebstrap systemd-container nftables iproute2 python3-venv qemu-system-x86 e2fsprogs xfsprogs
    btrfs-progs nodejs qemu-system-arm"
missing=""
command -v apt-get > /dev/null || { echo "this needs a Debian machine: README.md, See it work" >&2; exit 1; }
for package in $wanted; do
    dpkg-query -Wf '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "run as root: apt-get install$missing" >&2; exit 1; }
echo "installing$missing"
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null
