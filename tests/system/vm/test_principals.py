"""One act of each principal, on a kernel of its own: cgroup v2 with all controllers."""

from typing import Any

from tests.system.bed.vm import call_in_vm
from tests.system.hub.machines import ALICE, a_hub, a_member
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.vm.vm_results import complaints, seen_by

CONFIG = f"""
[approvals]
webhook = "https://hook.test/"
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
env = {{ TOKEN = "${{TOKEN}}" }}
[mcp_servers.probe.mcpwrap]
agents = ["alice"]
egress = ["api.good.test"]
{a_member("beta", ours=f'{ALICE}{chr(10)}expose = "http"')}
{a_hub(["beta"], ours=ALICE)}
[mcp_servers.python]
python = "/usr/bin/python3"
[mcp_servers.python.mcpwrap]
agents = ["alice"]
"""
FILES = {"/etc/mcpwrap/config.toml": CONFIG}
NOTHING = {"CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
NOT_AN_AGENT = "this account may not use 'beta': see `agents` in /etc/mcpwrap/config.toml"


@only_in_test_all("an emulated kernel needs minutes for it; each principal has stories of its own")
@on_release("trixie")
def test_each_principal_acts_under_its_own_account(suite: str) -> None:
    result = call_in_vm(suite, ("principals_story", "play"), FILES)
    seen = seen_by(result)
    print(*(f"{name}: {found}" for name, found in seen.items()), sep="\n")
    assert seen["root's programs"] == [19, "nothing to do\nnote: tools is a hub of beta\n"]
    assert seen["operator"] == ["probe", True, True]
    _expect_sessions(seen)
    assert seen["squid"] == ["mcpwrap-proxy", "403"]
    assert seen["front"] == [443, "mcpwrap-front"]
    assert (seen["python server"], seen["worker"]) == ("mcpw-python", "mcpwrap-worker")
    assert seen["run slot"] in {"'mcpj-python-0'", "'mcpj-python-1'"}
    assert seen["listener"] == ["mcpwrap-http", "200", "ConnectionRefusedError"]
    assert seen["client of a remote server"] == ["remote", [".local"], 0]
    assert seen["page"] == ["mcpwrap-web", 200, True]
    assert seen["webhook"] == "mcpwrap-webhook"
    assert seen["next version"][0] == "version 1, as the server reports it"
    assert seen["proposal reader"] is True
    ends = [seen["end of probe"], seen["end of python"], *seen["ends"]]
    assert ends == [[0, ""]] * 4
    assert complaints(result) == []


def _expect_sessions(seen: dict[str, Any]) -> None:
    assert set(seen["stub"]) == {"alice"}
    assert (seen["gate"], seen["wrapper"]) == ("mcpwrap-gate", "mcpw-beta")
    assert seen["server"] == ["mcpw-beta", NOTHING]
    assert seen["hub"] == ["mcpw-tools", 'beta: {"word": "by the hub"}']
    status, told = seen["another account"]
    assert (status, NOT_AN_AGENT in told) == (77, True), told
