"""Umask of a server, in octal and in words: permissions of group and others its new files lack."""

import pytest

from mcpwrap.core import umask


@pytest.mark.parametrize(
    ("text", "mask"), [("0027", 0o027), ("027", 0o027), ("0000", 0), ("0077", umask.STRICT)]
)
def test_a_mask_is_three_octal_digits(text: str, mask: int) -> None:
    assert umask.parse(text) == mask
    assert umask.parse(umask.text(mask)) == mask


@pytest.mark.parametrize(
    "text", ["", "27", "0o27", "0028", "1022", "00027", "-027", "0027\n", " 027", "\u0660027"]
)
def test_what_is_no_mask_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="three octal digits"):
        umask.parse(text)


@pytest.mark.parametrize("text", ["0100", "0777", "700"])
def test_the_owner_loses_nothing(text: str) -> None:
    with pytest.raises(umask.OwnerMaskedError):
        umask.parse(text)


@pytest.mark.parametrize(("agents", "servers"), [(0o022, 0o022), (0o777, 0o077), (0, 0)])
def test_nor_by_the_mask_of_an_agent(agents: int, servers: int) -> None:
    assert umask.of_agent(agents) == servers
