# On a run root: polkit as the distribution has it, to be installed in a machine that runs. The layer
# with our package lies above this one, and brings its own list of accounts and of what is installed.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
mkdir -p /opt/polkit/partial
apt-get install -qy --no-install-recommends --download-only -o Dir::Cache::archives=/opt/polkit polkitd
rm -rf /opt/polkit/partial /opt/polkit/lock /etc/resolv.conf
apt-get clean
