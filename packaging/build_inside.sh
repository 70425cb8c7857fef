# Build the package for release $1 inside a build root, in /build/mcpwrap, and check it with lintian.
set -eu
cd /build/mcpwrap
cp -r packaging/debian debian
ln -sf /run/resolv.conf /etc/resolv.conf
# The libraries of /usr/lib/mcpwrap/site, each the exact file that was reviewed.
python3 -m pip install -q --no-compile --no-deps --require-hashes --only-binary=:all: \
    --target site -r packaging/site.txt
version=$(dpkg-parsechangelog -S Version)
sed -i "1s/($version)/($version+$1)/" debian/changelog
DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -b -us -uc
cd ..
# The package is not Debian's, and its maintainer's address has no mail host.
lintian --fail-on error --tag-display-limit 0 \
    --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog mcpwrap_*.changes > lintian.txt 2>&1 || { cat lintian.txt; exit 1; }
