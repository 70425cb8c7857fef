"""Certificate authority of one run, and a certificate for each name that a client requests."""

import datetime as dt
import ssl

import trustme

from tests.system.bed import internet_map
from tests.system.bed.origins.record import CONNECTION

LONG_AGO = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)


class Certificates:
    """Two authorities, one that machines trust and one not, and the certificates of both."""

    def __init__(self) -> None:
        self._authority = trustme.CA()
        self._stranger = trustme.CA()
        self._by_name: dict[str, ssl.SSLContext] = {}
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.sni_callback = self._choose

    @property
    def ca_pem(self) -> str:
        """Certificate of the authority."""
        return self._authority.cert_pem.bytes().decode()

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext
    ) -> None:
        CONNECTION.get().sni = name
        address = CONNECTION.get().address
        try:
            connection.context = self._find((name or address).lower())
        except ValueError:  # a name that no certificate can have
            connection.context = self._find(address)

    def _find(self, name: str) -> ssl.SSLContext:
        if name not in self._by_name:
            self._by_name[name] = self._make(name)
        return self._by_name[name]

    def _make(self, name: str) -> ssl.SSLContext:
        match name:
            case internet_map.BAD_AUTHORITY:
                return _context(self._stranger.issue_cert(name))
            case internet_map.WRONG_NAME:
                return _context(self._authority.issue_cert("api.good.test"))
            case internet_map.EXPIRED:
                until = LONG_AGO + dt.timedelta(days=1)
                return _context(
                    self._authority.issue_cert(name, not_before=LONG_AGO, not_after=until)
                )
            case internet_map.H2:
                context = _context(self._authority.issue_cert(name))
                context.set_alpn_protocols(["h2", "http/1.1"])
                return context
            case _:
                return _context(self._authority.issue_cert(name))


def _context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context
