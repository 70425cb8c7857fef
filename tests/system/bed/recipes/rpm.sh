# On a run root: rpm, rpmlint and dnf as Debian has them, and one package that stands for the parts of an rpm
# distribution that Debian has as packages of its own.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -qy --no-install-recommends rpm rpmlint dnf5
rm -f /etc/resolv.conf
apt-get clean
# What these libraries provide is what rpm says of them: a package that needs a newer C library is refused.
rm -rf /opt/rpm
mkdir /opt/rpm
for library in ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libgcc_s.so.1 libstdc++.so.6 libseccomp.so.2; do
    file=$(ldconfig -p | sed -n "s|^.*$library .*=> \(/.*\)|\1|p" | head -n 1)
    [ -z "$file" ] || echo "$file"
done | /usr/lib/rpm/elfdeps --provides | sort -u | sed 's/^/Provides: /' > /opt/rpm/libraries
rpmbuild -bb --define '_rpmdir /opt/rpm' --define '_build_name_fmt %%{NAME}.rpm' --define "_topdir /opt/rpm/build" \
    --define "python_version $(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" \
    "$INPUTS/rpm.distribution.spec"
rm -rf /opt/rpm/build
