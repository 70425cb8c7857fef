"""Commands of ip(8) in the network namespace of a process. RUNS AS ROOT on the test host."""

import subprocess


def ip(pid: int, commands: str) -> None:
    """Run these commands, one a line, in the network namespace of a process.

    Raises:
        RuntimeError: one of them failed, with its message.
    """
    argv = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-batch", "-"]
    done = subprocess.run(argv, input=commands, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"ip: {done.stderr}")


def lay_cable(one: tuple[str, int], other: tuple[str, int]) -> None:
    """Make a cable between two namespaces: of each end the device, and a process there.

    Nothing is made in the host's own namespace.
    """
    (device, pid), (other_device, other_pid) = one, other
    ends = [device, "netns", str(pid), "type", "veth", "peer", other_device]
    subprocess.run(["ip", "link", "add", *ends, "netns", str(other_pid)], check=True)
