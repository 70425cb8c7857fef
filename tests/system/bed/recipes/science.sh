# On a run root: numpy, pandas and matplotlib as Debian has them, and the font that figures use.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -q -y --no-install-recommends python3-numpy python3-pandas python3-matplotlib \
    python3-pil fonts-dejavu-core
apt-get clean
rm -rf /var/lib/apt/lists/* /root/.cache /etc/resolv.conf
