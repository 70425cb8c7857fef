# On a base root: what writes the lists of packages of apt and of dnf.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -y -q --no-install-recommends apt-utils createrepo-c
rm -f /etc/resolv.conf
