"""Unix sockets: peer credentials, passed descriptors, memfds."""
