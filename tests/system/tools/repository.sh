# In a root with apt-ftparchive and createrepo_c: write the lists of the packages in /srv/repository. $1 is the time of
# the lists of dnf, in seconds.
set -eu
cd /srv/repository
if [ -d apt ]; then
    cd apt
    for pool in pool/*; do
        suite=${pool#pool/}
        for arch in amd64 arm64; do
            lists=dists/$suite/main/binary-$arch
            mkdir -p "$lists"
            apt-ftparchive --arch "$arch" packages "$pool" > "$lists/Packages"
            gzip --keep --best --no-name "$lists/Packages"
        done
        about="-o APT::FTPArchive::Release"
        apt-ftparchive $about::Origin=mcpwrap $about::Label=mcpwrap $about::Suite="$suite" $about::Codename="$suite" \
            $about::Components=main "-o" "APT::FTPArchive::Release::Architectures=amd64 arm64" \
            release "dists/$suite" > "$suite.release"
        mv "$suite.release" "dists/$suite/Release"
    done
    cd ..
fi
for folder in dnf/*/*; do
    [ -d "$folder" ] || continue
    createrepo_c --quiet --revision "$1" --set-timestamp-to-revision "$folder"
done
