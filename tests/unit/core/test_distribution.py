"""Words of a distribution, by recorded os-release(5) files: its commands, packages and paths."""

from pathlib import Path

import pytest

from mcpwrap.core.distribution import OsRelease, distribution_of, parse_os_release

RECORDED = Path(__file__).parent / "os_release"
DEBIAN_CAS = "/etc/ssl/certs/ca-certificates.crt"
FEDORA_CAS = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
SQUID_OF_DEBIAN = "`sudo apt install squid-openssl`"
IN_LIB, IN_LIB64, IN_LIBEXEC = (
    f"/usr/{folder}/squid/security_file_certgen" for folder in ("lib", "lib64", "libexec")
)


@pytest.mark.parametrize(
    ("file", "release", "squid", "notify", "cas", "certgen"),
    [
        ("debian-12", "debian 12", SQUID_OF_DEBIAN, "libnotify-bin", DEBIAN_CAS, IN_LIB),
        ("debian-13", "debian 13", SQUID_OF_DEBIAN, "libnotify-bin", DEBIAN_CAS, IN_LIB),
        # Without a version.
        ("debian-testing", "debian ", SQUID_OF_DEBIAN, "libnotify-bin", DEBIAN_CAS, IN_LIB),
        ("ubuntu-24.04", "ubuntu 24.04", SQUID_OF_DEBIAN, "libnotify-bin", DEBIAN_CAS, IN_LIB),
        ("fedora-42", "fedora 42", "`sudo dnf install squid`", "libnotify", FEDORA_CAS, IN_LIB64),
        ("rhel-10", "rhel 10.0", "`sudo dnf install squid`", "libnotify", FEDORA_CAS, IN_LIB64),
        ("rocky-9", "rocky 9.4", "`sudo dnf install squid`", "libnotify", FEDORA_CAS, IN_LIB64),
        (
            "opensuse-tumbleweed",
            "opensuse-tumbleweed 20250527",
            "`sudo zypper install squid`",
            "libnotify-tools",
            "/etc/ssl/ca-bundle.pem",
            IN_LIBEXEC,
        ),
        (
            "opensuse-leap-15.6",
            "opensuse-leap 15.6",
            "`sudo zypper install squid`",
            "libnotify-tools",
            "/etc/ssl/ca-bundle.pem",
            IN_LIB,  # which has no /usr/libexec
        ),
        ("arch", "arch ", "`sudo pacman -S squid`", "libnotify", DEBIAN_CAS, IN_LIB),
    ],
)
def test_a_recorded_distribution_has_its_own_words(
    file: str, release: str, squid: str, notify: str, cas: str, certgen: str
) -> None:
    found = parse_os_release((RECORDED / file).read_text())
    assert f"{found.id} {found.version}" == release
    words = distribution_of(found)
    assert words.install("squid") == squid
    assert words.install("notify-send").endswith(f" {notify}`")
    assert (words.system_cas, words.certgen) == (cas, certgen)
    # The command that asks nothing is for the same packages, by the same package manager.
    assert words.install_command("squid")[-1] == squid.strip("`").split()[-1]
    assert words.install_command("squid")[0] in {
        "/usr/bin/apt-get", "/usr/bin/dnf", "/usr/bin/zypper", "/usr/bin/pacman",
    }  # fmt: skip


def test_a_derivative_has_the_words_of_the_first_known_one_that_it_is_like() -> None:
    nobara = OsRelease(id="nobara", like=("sailfish", "rhel", "debian"))
    assert distribution_of(nobara).family == "fedora"
    assert distribution_of(OsRelease(id="ol", like=("fedora",))).family == "fedora"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ID=nixos\n",
        "ID=$(reboot)\n",
        'ID="debian\n',  # no second quotation mark
        "ID=debian; reboot\n",
        "ID=deb\x1b[2Jian\n",
        "ID=../../etc\n",
        f"ID={'a' * 65}\n",
        "id=debian\n",
        "\0" * 1000,
    ],
)
def test_of_an_unknown_or_hostile_file_no_word_is_taken(text: str) -> None:
    words = distribution_of(parse_os_release(text))
    assert words.family == "unknown"
    hint = "install Squid with OpenSSL by this distribution's package manager"
    assert words.install("squid") == hint
    assert words.install_command("squid") == []
    assert words.system_cas == DEBIAN_CAS  # Alpine, Gentoo and others have it too


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID='debian'\n", OsRelease(id="debian")),
        ("ID=debian # of two\nVERSION_ID=12\n", OsRelease(id="debian", version="12")),
        ("ID=fedora\nID=debian\n", OsRelease(id="debian")),  # as in a shell, the last counts
        ('ID_LIKE="suse  $x ../y"\n', OsRelease(like=("suse",))),
        ("VERSION_ID=`id`\n", OsRelease()),
    ],
)
def test_a_file_is_read_and_never_executed(text: str, expected: OsRelease) -> None:
    assert parse_os_release(text) == expected
