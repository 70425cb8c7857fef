"""Names of servers and run slots, and the accounts, UIDs and addresses derived from them.

One secret has a fixed name: the key that seals a server's OAuth logins, which only root makes.
"""

import hashlib
import re
import unicodedata
from collections.abc import Collection

FIRST_UID = 20_000
LAST_UID = 39_999
_FIRST_PERSON_UID = 1000  # SYS_UID_MAX is 999: useradd(8), and `man 5 login.defs`
_NOBODY_UID = 65534
ACCOUNT_PREFIX = "mcpw-"
JOB_PREFIX = "mcpj-"
OUR_PREFIXES = (ACCOUNT_PREFIX, JOB_PREFIX)
# useradd(8): a login is at most 32 characters; `mcpw-` takes five.
MAX_NAME_CHARS = 26
MAX_POOL_CHARS = 24  # `mcpj-` takes five, and `-63` three
_NAME = re.compile(rf"[a-z][a-z0-9_-]{{0,{MAX_NAME_CHARS - 1}}}")
EGRESS_PORT = 3128  # of Squid, at each egress and health address
_HEALTH = {"proxy": 128, "intercept": 192}
_NO_NAME = re.compile(r"[^a-z0-9_-]+")
OAUTH_KEY = "MCPWRAP_OAUTH_KEY"
PROJECT = "PROJECT"  # `${PROJECT}` in an argument of a server


def is_server_name(untrusted_name: str) -> bool:
    """Return whether this name is safe as a file, unit instance and account name."""
    return _NAME.fullmatch(untrusted_name) is not None


def server_name_for(untrusted_name: str, taken: Collection[str] = ()) -> str:
    """Return a valid name for a server that has another one: `my-server` for `My Server!`.

    Letters lose their accents, and characters that no name can have become `-`. If the name is
    among `taken` it gets a number, from 2 on.
    """
    plain = unicodedata.normalize("NFKD", untrusted_name).encode("ascii", "ignore").decode()
    base = _NO_NAME.sub("-", plain.lower()).strip("-_")
    if base and not base[0].isalpha():
        base = f"mcp-{base}"
    base = base[:MAX_NAME_CHARS].rstrip("-_") or "server"
    name, number = base, 1
    while name in taken:
        number += 1
        ending = f"-{number}"
        name = base[: MAX_NAME_CHARS - len(ending)].rstrip("-_") + ending
    return name


def account_of(name: str) -> str:
    """Return the account under which the server `name`, or the run slot of that name, runs."""
    return ACCOUNT_PREFIX + name if "/" not in name else JOB_PREFIX + name.replace("/", "-")


def name_of(account: str) -> str:
    """Return the name of the server or run slot that has one of our accounts."""
    if account.startswith(ACCOUNT_PREFIX):
        return account.removeprefix(ACCOUNT_PREFIX)
    pool, _, number = account.removeprefix(JOB_PREFIX).rpartition("-")
    return slot_name(pool, int(number)) if number.isdecimal() else account


def slot_name(pool: str, number: int) -> str:
    """Return the name of a run slot, which no server can have: `python/0`."""
    return f"{pool}/{number}"


def is_slot_name(name: str) -> bool:
    """Return whether this is the name of a run slot."""
    return "/" in name


def preferred_uid(name: str) -> int:
    """Return the UID that `name` gets unless another account has it: 20000 to 39999.

    Names can collide: of 50, two share a UID with a probability of 6 %. The registry resolves that.
    """
    digest = hashlib.sha256(name.encode()).digest()
    return FIRST_UID + int.from_bytes(digest, "big") % (LAST_UID - FIRST_UID + 1)


def is_person(uid: int) -> bool:
    """Return whether an account is that of a person: not of the system, and not of a server."""
    is_system = uid < _FIRST_PERSON_UID or uid == _NOBODY_UID
    return not is_system and not FIRST_UID <= uid <= LAST_UID


def egress_address(uid: int) -> str:
    """Return the egress address of this wrapper, on loopback: 127.77.0.0 to 127.77.78.31.

    It is an address and not a port, so that the unit's own IPAddressAllow= enforces the same again.
    """
    high, low = divmod(uid - FIRST_UID, 256)
    return f"127.77.{high}.{low}"


def health_address(instance: str) -> str:
    """Return the address at which a Squid instance, for example `proxy-1`, is probed.

    Instances that see names are from 127.77.128.0 on, those that open TLS from 127.77.192.0 on, so
    that the packet rules can distinguish the two kinds. Egress addresses of wrappers end before.
    """
    kind, _, number = instance.rpartition("-")
    high, low = divmod(int(number), 256)
    return f"127.77.{_HEALTH[kind] + high}.{low}"


def next_uid(uid: int) -> int:
    """Return the UID to try when `uid` is taken; after the last comes the first."""
    return FIRST_UID if uid == LAST_UID else uid + 1
