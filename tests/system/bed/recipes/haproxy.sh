# On a run root: HAProxy as the distribution has it, to be installed in a machine that runs. The layer
# with our package lies above this one, and brings its own list of accounts and of what is installed.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
mkdir -p /opt/haproxy/partial
apt-get install -qy --no-install-recommends --download-only -o Dir::Cache::archives=/opt/haproxy haproxy
rm -rf /opt/haproxy/partial /opt/haproxy/lock /etc/resolv.conf
apt-get clean
