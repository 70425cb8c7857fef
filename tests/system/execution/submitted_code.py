"""Longer code that stories submit to `run_python`: it is input, as an agent writes it."""

# Draws a PNG of this size; `noise` makes it as long as its pixels.
PNG = """
import os, struct, zlib
def png(path, width, height, noise=False):
    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check
    line = lambda: b"\\0" + (os.urandom(3 * width) if noise else bytes(3 * width))
    pixels = zlib.compress(b"".join(line() for _ in range(height)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", header))
        file.write(chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
"""
# Leaves in /out all that is no plain file with a plain name, and two files that are.
# ------------------------------------------------------------------------------ files of a run
LINKS = """
import os, socket
for target in ("/etc/passwd", "/etc", "/proc/self/environ", "plain"):
    os.symlink(target, f"/out/to-{os.path.basename(target)}")
os.symlink("/etc/passwd", "/run/mcpwrap-job/value")
os.mkfifo("/out/fifo")
os.mkdir("/out/folder")
os.mknod("/out/socket", 0o140600)
socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].bind("/out/bound")
open("/out/folder/inner", "w").write("x")
open("/out/shut", "w").write("x")
os.chmod("/out/shut", 0)
open("/out/.hidden", "w").write("x")
open("/out/new\\nline", "w").write("x")
os.close(os.open(b"/out/\\xff", os.O_CREAT | os.O_WRONLY))
open("/out/sparse", "wb").truncate(1 << 40)
open("/out/plain", "w").write("kept")
os.link("/out/plain", "/out/second-name")
"""
HANGS_IN_TWO_THREADS = """
import threading

def wait_for_ever():
    threading.Event().wait()

threading.Thread(target=wait_for_ever, daemon=True).start()
print("begun")
while True:
    pass
"""
