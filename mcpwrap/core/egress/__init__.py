"""PURE: egress of servers: host names, DNS, TLS ClientHello, Squid's access log, advice."""
