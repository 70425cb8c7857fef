# On a run root: the JSON readers of other languages, under /opt/readers. The compilers are installed
# on an overlay of their own, which goes with the mounts of this recipe: the layer has what they made.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
apt-get install -q -y --no-install-recommends libjson-c5 libjansson4 ruby php-cli
mkdir -p /opt/readers /tmp/build
mount -t tmpfs tmpfs /tmp/build
mkdir /tmp/build/upper /tmp/build/work /tmp/build/root
mount -t overlay -o lowerdir=/,upperdir=/tmp/build/upper,workdir=/tmp/build/work overlay /tmp/build/root
cp "$INPUTS"/readers.* /tmp/build/root/opt/readers
mount --rbind /proc /tmp/build/root/proc
mount --rbind /dev /tmp/build/root/dev
mount --rbind /run /tmp/build/root/run
chroot /tmp/build/root sh -eu <<'BUILD'
apt-get install -q -y --no-install-recommends gcc libc6-dev libjson-c-dev libjansson-dev golang-go \
    cargo librust-serde-json-dev librust-serde+derive-dev
cd /opt/readers
gcc -O1 -Wall -Werror -o json-c readers.json_c.c -ljson-c
gcc -O1 -Wall -Werror -o jansson readers.jansson.c -ljansson
GOCACHE=/tmp/go CGO_ENABLED=0 GOTOOLCHAIN=local go build -trimpath -ldflags '-s -w' -o go readers.go.go
mkdir -p /tmp/rust/src /tmp/rust/.cargo
cp readers.serde.rs /tmp/rust/src/main.rs
cp readers.cargo.toml /tmp/rust/Cargo.toml
cp readers.registry.toml /tmp/rust/.cargo/config.toml
cd /tmp/rust
cargo build --release --offline
cp target/release/reader /opt/readers/serde
cargo build --release --offline --features private
cp target/release/reader /opt/readers/serde-private
BUILD
cd /tmp/build/root/opt/readers
cp json-c jansson go serde serde-private /opt/readers
cd /
umount -l /tmp/build/root /tmp/build
apt-get clean
rm -rf /tmp/build /var/lib/apt/lists/* /etc/resolv.conf
