"""Linux and systemd: system calls, tools, accounts and files of this machine, with checks."""
