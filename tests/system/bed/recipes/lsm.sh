# On a base root: what builds and reads policies of SELinux, and the parser of AppArmor's profiles. Nothing of it is
# in force: no kernel of the bed has either.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -q -y --no-install-recommends make m4 checkpolicy selinux-policy-default selinux-policy-dev \
    semodule-utils policycoreutils-python-utils setools python3-selinux apparmor
apt-get clean
rm -rf /var/lib/apt/lists/* /root/.cache /etc/resolv.conf
