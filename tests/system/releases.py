"""Which releases of Debian a test runs on: each, unless it says here that one is enough."""

import pytest

from tests.system.bed.roots import SUITES

# For what is decided by our own code alone, which is the same on each release: neither by systemd,
# nft or Squid, nor by what their versions tell us.
ON_ONE_RELEASE = pytest.mark.parametrize("suite", SUITES[:1], indirect=True)
