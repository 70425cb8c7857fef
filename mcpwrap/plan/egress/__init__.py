"""PURE: egress of servers as nftables elements and Squid configuration."""
