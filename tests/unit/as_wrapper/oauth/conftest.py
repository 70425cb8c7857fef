"""An authorization server for each test, on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.as_wrapper.oauth.world import World, world


@pytest.fixture
def there(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as one:
        yield one
