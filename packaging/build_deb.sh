# Build the .deb for target $1 (targets.toml), Python $2 and architecture $3 inside a build root, from the sources in
# $4/mcpwrap, and check it with lintian. Nothing is downloaded: the libraries are the wheels in $4/wheels. The program that
# makes the schemas runs here, by those in $4/native.
set -eu
cd "$4/mcpwrap"
cp -r packaging/debian debian
export TARGET="$1" MCPWRAP_PYTHON="$2" PYTHONDONTWRITEBYTECODE=1
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -S Timestamp)}"
. packaging/libraries.sh
libraries "$2" "$3" "$4/wheels" site
if [ "$2 $3" = "$native $native_arch" ]; then
    ln -s mcpwrap/site "$4/native-site"
else
    libraries "$native" "$native_arch" "$4/native" "$4/native-site"
fi
version=$(dpkg-parsechangelog -S Version)
sed -i "1s/($version)/($version+$1)/" debian/changelog
next=${2%.*}.$((${2#*.} + 1))
sed -i "s/@PYTHON@/python3:any, python3 (>= $2~), python3 (<< $next~)/" debian/control
PYTHONPATH=$4/native-site DEB_BUILD_OPTIONS=nostrip dpkg-buildpackage -b -d -us -uc -a"$3"
cd ..
# The package is not Debian's, and its maintainer's address has no mail host. The libraries are as their authors have
# built them.
lintian --fail-on error --tag-display-limit 0 --suppress-tags \
    bogus-mail-host,bogus-mail-host-in-debian-changelog,unstripped-binary-or-object \
    mcpwrap_*.changes > lintian.txt 2>&1 || { cat lintian.txt; exit 1; }
