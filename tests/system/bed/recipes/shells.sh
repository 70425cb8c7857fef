# On a run root: zsh, fish and bash-completion as the distribution has them, to be installed in a machine that runs.
# The layer with our package lies above this one, and brings its own list of accounts and of what is installed.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
mkdir -p /opt/shells/partial
apt-get install -qy --no-install-recommends --download-only -o Dir::Cache::archives=/opt/shells \
    zsh fish bash-completion sudo
rm -rf /opt/shells/partial /opt/shells/lock /etc/resolv.conf
apt-get clean
