"""Variables and headers of an entry, as values of a proposal."""

import pytest

from mcpwrap.config.migration.variable_expansion import (
    ExtractedSecrets,
    filled_in,
    header,
    secret_variable,
    template,
)
from mcpwrap.config.model import SecretRef, Template

HERE = {
    "DB_PASSWORD": "hunter",
    "TOKEN": "t0ken",
    "LEVEL": "info",
    "EMPTY": "",
    "workspaceFolder": "/home/alice/shop",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${LEVEL}", "info"),
        ("a ${LEVEL} b ${LEVEL}", "a info b info"),
        ("${env:LEVEL}", "info"),
        ("{env:LEVEL}", "info"),
        ("$LEVEL", "info"),
        ("$LEVEL!", "$LEVEL!"),  # only as a whole
        ("$level", "$level"),
        ("${workspaceFolder}/x", "/home/alice/shop/x"),
        ("${NONE:-debug}", "debug"),
        ("${NONE:-}", ""),
        ("${EMPTY:-debug}", "debug"),
        ("${NONE}", None),
        ("$NONE", None),
        ("${input:token}", None),
        ("x ${input:token}", None),
        ("${file:~/x}", None),
        ("{file:x}", "{file:x}"),
        ("${unclosed", None),
    ],
)
def test_what_an_agent_fills_in(text: str, expected: str | None) -> None:
    assert filled_in(text, HERE) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected", "value_by_key", "missing"),
    [
        ("LEVEL", "${LEVEL}", ("info",), {}, []),
        ("EMPTY", "", (), {}, []),
        ("API_KEY", "abc", (SecretRef("API_KEY"),), {"API_KEY": "abc"}, []),
        ("api-key", "abc", (SecretRef("API_KEY"),), {"API_KEY": "abc"}, []),
        ("X", "${TOKEN}", (SecretRef("TOKEN"),), {"TOKEN": "t0ken"}, []),  # what it really is
        ("X", " ${TOKEN}", (SecretRef("TOKEN"),), {"TOKEN": " t0ken"}, []),
        ("X", "${DB_PASSWORD}", (SecretRef("DB_PASSWORD"),), {"DB_PASSWORD": "hunter"}, []),
        ("X", "${input:x}", (SecretRef("X"),), {}, ["X"]),
        ("2FA_KEY", "abc", (SecretRef("K_2FA_KEY"),), {"K_2FA_KEY": "abc"}, []),
        ("***KEY***", "s3cr3t", (SecretRef("KEY"),), {"KEY": "s3cr3t"}, []),
        ("ключ", "s3cr3t", (SecretRef("SECRET"),), {"SECRET": "s3cr3t"}, []),
        (
            "MCPWRAP_OAUTH_KEY",  # ours
            "abc",
            (SecretRef("K_MCPWRAP_OAUTH_KEY"),),
            {"K_MCPWRAP_OAUTH_KEY": "abc"},
            [],
        ),
    ],
)
def test_a_variable(
    name: str, text: str, expected: Template, value_by_key: dict[str, str], missing: list[str]
) -> None:
    kept = ExtractedSecrets()
    assert template(name, text, HERE, kept) == expected
    assert (kept.value_by_key, kept.missing) == (value_by_key, missing)


def test_a_key_is_of_one_value() -> None:
    kept = ExtractedSecrets()
    refs = [kept.put("KEY", value) for value in ("a", "b", "a", None, None)]
    assert refs == [SecretRef(f"KEY{ending}") for ending in ("", "_2", "", "_3", "_4")]
    assert kept.value_by_key == {"KEY": "a", "KEY_2": "b"}
    assert len(kept.put("A" * 100, "x").key) <= 64


@pytest.mark.parametrize(
    ("name", "text", "expected", "value_by_key"),
    [
        ("Authorization", "Bearer abc", ("Bearer ", SecretRef("TOKEN")), {"TOKEN": "abc"}),
        ("Authorization", "Bearer ${TOKEN}", ("Bearer ", SecretRef("TOKEN")), {"TOKEN": "t0ken"}),
        ("Authorization", "token abc", ("token ", SecretRef("TOKEN")), {"TOKEN": "abc"}),
        ("Authorization", "abc", (SecretRef("AUTHORIZATION"),), {"AUTHORIZATION": "abc"}),
        ("X-Api-Key", "abc", (SecretRef("X_API_KEY"),), {"X_API_KEY": "abc"}),
        ("X-Tenant", "ours", ("ours",), {}),
    ],
)
def test_a_header(name: str, text: str, expected: Template, value_by_key: dict[str, str]) -> None:
    kept = ExtractedSecrets()
    assert header(name, text, HERE, kept) == expected
    assert kept.value_by_key == value_by_key


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${LEVEL} $TOKEN", ""),
        ("$TOKEN", "TOKEN"),
        ("https://x.example/${env:TOKEN}", "TOKEN"),
        ("a{env:DB_PASSWORD}", "DB_PASSWORD"),  # by its name: its value is a word
        ("${workspaceFolder}/${USER}", ""),
        ("${NONE:-x1y2z3}", ""),
    ],
)
def test_a_secret_of_the_persons_own(text: str, expected: str) -> None:
    assert secret_variable(text, HERE | {"USER": "alice2024"}) == expected


def test_the_persons_own_variables_are_named() -> None:
    kept = ExtractedSecrets()
    template("LOG_LEVEL", "${TOKEN}", HERE, kept)
    header("Authorization", "Bearer ${DB_PASSWORD}", HERE, kept)
    template("API_KEY", "abc", HERE, kept)
    assert kept.value_by_key == {"TOKEN": "t0ken", "DB_PASSWORD": "hunter", "API_KEY": "abc"}
    assert kept.variables_by_key == {"TOKEN": ("TOKEN",), "DB_PASSWORD": ("DB_PASSWORD",)}
