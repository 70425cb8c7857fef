# On a base root: what writes the lists of packages of apt and of dnf, and dnf itself.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -y -q --no-install-recommends apt-utils createrepo-c dnf
rm -f /etc/resolv.conf
