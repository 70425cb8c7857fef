# On a base root: the program that runs those of another architecture, as one static file. See bed/foreign.py.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
mkdir /tmp/deb /opt/emulator
cd /tmp/deb
apt-get download -q qemu-user
dpkg-deb -x qemu-user_*.deb .
cp usr/bin/qemu-aarch64 /opt/emulator/arm64
rm -rf /tmp/deb /var/lib/apt/lists/* /etc/resolv.conf
