# On a base root: compile go.get.go. The compiler is unpacked, not installed, and leaves again.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
mkdir -p /tmp/deb /tmp/root /tmp/apt/lists/partial /tmp/apt/cache/archives/partial /opt/mcp/go
# What apt learns now is not kept: the lists of the layer below stay as they are.
echo 'Dir::State::Lists "/tmp/apt/lists"; Dir::Cache "/tmp/apt/cache";' > /tmp/apt/conf
export APT_CONFIG=/tmp/apt/conf
apt-get update -q
cd /tmp/deb
compiler=$(apt-cache depends golang-go | sed -n 's/.*Depends: \(golang-[0-9.]*-go\)/\1/p')
apt-get download -q "$compiler" "${compiler%-go}-src"
for deb in *.deb; do
    dpkg-deb -x "$deb" /tmp/root
done
cd /tmp
GOROOT=$(ls -d /tmp/root/usr/lib/go-*)
export GOROOT GOCACHE=/tmp/cache CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
"$GOROOT/bin/go" build -trimpath -ldflags '-s -w' -o /opt/mcp/go/get "$INPUTS/go.get.go"
rm -rf /tmp/deb /tmp/root /tmp/apt /tmp/cache /etc/resolv.conf
