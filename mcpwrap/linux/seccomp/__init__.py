"""System call filters (seccomp(2)), as BPF programs."""
