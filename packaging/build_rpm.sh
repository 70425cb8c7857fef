# Build the .rpm for target $1 (targets.toml), Python $2 and architecture $3 inside a build root, from the sources in
# $4/mcpwrap, and check it with rpmlint. It requires the packages $5; its release number is $RELEASE. Nothing is
# downloaded: see build_deb.sh.
set -eu
cd "$4/mcpwrap"
export PYTHONDONTWRITEBYTECODE=1
changelog="-l packaging/debian/changelog"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog $changelog -S Timestamp)}"
. packaging/libraries.sh
libraries "$2" "$3" "$4/wheels" site packaging/rpm/site.txt
# Published as source alone, and pure Python: as Debian has it, if it is the file that was reviewed.
(cd /usr/lib/python3/dist-packages && sha256sum --quiet -c) < packaging/rpm/sdnotify.sha256
install -D -m 0644 -t site/sdnotify /usr/lib/python3/dist-packages/sdnotify/__init__.py
install -D -m 0644 /usr/share/doc/python3-sdnotify/copyright build/licenses/sdnotify
libraries "$native" "$native_arch" "$4/native" "$4/native-site"
machine=$(case "$3" in amd64) echo x86_64 ;; arm64) echo aarch64 ;; esac)
PYTHONPATH=$4/native-site rpmbuild -bb --target "$machine" --define "_topdir $4/rpm" --define "tree $PWD" \
    --define "mcpwrap_version $(dpkg-parsechangelog $changelog -S Version)" --define "mcpwrap_release $RELEASE" \
    --define "tag $1" --define "python $2" --define "python_digits $(echo "$2" | tr -d .)" \
    --define "distribution_requires $5" packaging/rpm/mcpwrap.spec
mv "$4"/rpm/RPMS/*/*.rpm "$4"
cd "$4"
rpmlint --strict --config mcpwrap/packaging/rpm/rpmlint.toml ./*.rpm > rpmlint.txt 2>&1 || { cat rpmlint.txt; exit 1; }
