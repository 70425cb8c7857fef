# On a run root: firewalls and programs with packet rules of their own, as the distribution has them, to be installed
# in a machine that runs. The layer with our package lies above this one, and brings its own list of accounts and of
# what is installed. A folder for each.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
download() {
    folder=/opt/beside/$1
    shift
    mkdir -p "$folder/partial"
    apt-get install -qy --no-install-recommends --download-only -o "Dir::Cache::archives=$folder" "$@"
    rm -rf "$folder/partial" "$folder/lock"
}
# `firewall-cmd --direct` needs iptables, which only is recommended.
download firewalld firewalld iptables
download ufw ufw
download docker docker.io docker-cli
# Its networks, which have the packet rules, without QEMU.
download libvirt libvirt-daemon-config-network libvirt-clients
download needrestart needrestart
rm -rf /etc/resolv.conf
apt-get clean
