# On a root: a kernel, a small initrd for it, and the unit that plays a story. See bed/vm.py.
set -eu
ln -sf /run/resolv.conf /etc/resolv.conf
apt-get update -q
# Unpacked, not installed: the layer with our package lies above this one, and brings its own list
# of what is installed. And a kernel that is installed wants initramfs-tools, whose initrd is slow.
mkdir -p /tmp/deb /tmp/only-now
cd /tmp/deb
kernel=$(apt-cache depends "linux-image-cloud-$(dpkg --print-architecture)" | sed -n 's/.*Depends: \(linux-image-[0-9]\)/\1/p')
# From Linux 7 on it is in three packages, on which the one with its name depends.
parts=$(apt-cache depends "$kernel" | sed -n 's/.*Depends: \(linux-\(base\|binary\|modules\)-[0-9].*\)/\1/p')
apt-get download -q "$kernel" $parts kmod libkmod2 busybox-static cpio
for deb in kmod_* libkmod2_*; do # the kernel loads the modules of nftables by /sbin/modprobe
    dpkg-deb -x "$deb" /
done
for deb in linux-* busybox* cpio*; do
    dpkg-deb -x "$deb" /tmp/only-now
done

cd /tmp/only-now
version=$(ls usr/lib/modules)
mkdir -p /usr/lib/modules initrd/bin initrd/modules initrd/dev initrd/proc initrd/new initrd/layers
cp "$(find . -name 'vmlinuz*' -type f)" /boot/vmlinuz
cp -a "usr/lib/modules/$version" /usr/lib/modules/
depmod "$version"
busybox=$(find . -path '*bin/busybox')
cp "$busybox" initrd/bin/

# What reaches the disks, in the order in which it must be loaded.
for name in virtio_pci virtio_blk ext4 overlay; do
    modprobe -S "$version" --show-depends "$name"
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' > modules
number=100
while read -r module; do
    number=$((number + 1))
    case "$module" in
        *.xz) "$busybox" xzcat "$module" ;;
        *) cat "$module" ;;
    esac > "initrd/modules/$number.ko"
done < modules

cat > initrd/init <<'INIT'
#!/bin/busybox sh
# Mount the root of a machine as bed/nspawn.py does: layers from disks, what changes in memory.
b=/bin/busybox
fail() { echo "initrd: $1 failed"; $b poweroff -f; }
$b mount -t proc proc /proc && $b mount -t devtmpfs dev /dev || fail "mounting /dev"
for module in /modules/*; do $b insmod "$module" || fail "insmod $module"; done
$b mount -t tmpfs -o mode=0755 tmpfs /layers
$b mkdir /layers/upper /layers/work /layers/vda /layers/vdb
for disk in vda vdb; do
    tries=0
    while [ ! -e /dev/$disk ] && [ $tries -lt 500 ]; do tries=$((tries + 1)); $b usleep 10000; done
    $b mount -t ext4 -o ro /dev/$disk /layers/$disk || fail "mounting $disk"
done
layers=lowerdir=/layers/vdb:/layers/vda,upperdir=/layers/upper,workdir=/layers/work
$b mount -t overlay -o $layers overlay /new || fail "mounting the layers"
$b mount --move /dev /new/dev
$b umount /proc
exec $b switch_root /new /lib/systemd/systemd
INIT
chmod +x initrd/init
# Not compressed: an emulated processor takes longer to unpack it than to read it.
(cd initrd && find . | ../usr/bin/cpio -o -H newc --quiet) > /boot/initrd

# Each program that starts costs an emulated processor a fifth of a second.
systemctl mask -q modprobe@drm.service modprobe@efi_pstore.service modprobe@configfs.service \
    modprobe@fuse.service kmod-static-nodes.service systemd-modules-load.service \
    proc-sys-fs-binfmt_misc.automount systemd-binfmt.service systemd-random-seed.service \
    systemd-journal-flush.service systemd-remount-fs.service

mkdir -p /usr/lib/bed /usr/lib/systemd/system/multi-user.target.wants
cat > /usr/lib/bed/play <<'PLAY'
#!/bin/sh
# Take the story from the third disk, and leave what came of it on the fourth.
set -eu
tar -C / -xf /dev/vdc
mkdir /run/bed/left
cd /root
status=0
timeout --kill-after=5 "$(cat /run/bed/limit)" /run/bed/story > /run/bed/left/output 2>&1 || status=$?
echo $status > /run/bed/left/status
journalctl --sync
journalctl -b -o json --no-pager > /run/bed/left/journal
tar -C /run/bed/left -cf /dev/vdd .
sync
PLAY
chmod +x /usr/lib/bed/play
cat > /usr/lib/systemd/system/bed.service <<'UNIT'
[Unit]
After=multi-user.target
# At once: nothing of this machine is looked at again.
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
Type=oneshot
ExecStart=/usr/lib/bed/play
Environment=HOME=/root LANG=C.UTF-8
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
UNIT
ln -s ../bed.service /usr/lib/systemd/system/multi-user.target.wants/
rm -rf /tmp/deb /tmp/only-now /var/lib/apt/lists/* /etc/resolv.conf
