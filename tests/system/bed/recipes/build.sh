# On a base root: what building and checking the package needs.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -y -q --no-install-recommends build-essential debhelper dh-python fakeroot lintian python3-pip \
    python3-docutils faketime rpm rpmlint selinux-policy-dev checkpolicy m4 semodule-utils
rm -f /etc/resolv.conf
