"""Servers of plugins: found after real agents have installed the plugins themselves."""

import json
from typing import Any

import pytest

from tests.system.bed.machine import Machine
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap import machines, real_plugins
from tests.system.wrap.real_plugins import PLUGINS, Plugin

STAGE = machines.with_agents
# Beside the tests of this file a layer is made, the first time.
pytestmark = on_release("trixie")

SHOWN = "/home/alice/shown"
NOTIFY_SEND = f"#!/bin/sh\nprintf '%s\\n' \"$@\" >> {SHOWN}\n"


@pytest.fixture
def agents_machine(machine: Machine) -> Machine:
    """Lend a machine with a desktop that records its notifications, and without plugins."""
    machines.anew(machine, groups="mcpwrap")
    machine.write("/usr/bin/notify-send", NOTIFY_SEND, mode=0o755)
    real_plugins.put_files(machine)
    return machine


def servers(machine: Machine, plugin: Plugin) -> list[tuple[str, dict[str, Any]]]:
    """Return the servers that plugins bring to an agent, each with its file."""
    said = machine.as_user("alice", "mcpwrap clients --json || true").out
    return [
        (file["path"], server)
        for file in json.loads(said)["files"]
        if file["agents"] == [plugin.agent] and file["plugin"] == plugin.id
        for server in file["servers"]
    ]


def told(machine: Machine) -> str:
    """Return the notifications of one check."""
    machine.as_root(f"rm -f {SHOWN}")
    machine.as_user("alice", "mcpwrap clients --notify")
    return machine.look(f"cat {SHOWN} 2>/dev/null || true")


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.agent)
def test_a_server_that_a_plugin_brings_is_told_once_and_can_be_turned_off(
    agents_machine: Machine, plugin: Plugin
) -> None:
    machine = agents_machine
    assert servers(machine, plugin) == []  # the twin: it is there, and not installed
    assert "secretive" not in told(machine)

    machine.as_user("alice", plugin.install)
    [(path, server)] = servers(machine, plugin)
    assert path == plugin.path
    assert (server["name"], server["state"]) == ("secretive", "raw")
    assert f"secretive ({plugin.agent}): raw" in told(machine)
    assert "secretive" not in told(machine)

    before = machine.path(plugin.path).read_bytes()
    done = machine.as_user("alice", f"mcpwrap wrap {plugin.agent} --yes", status=1)
    assert f"is a file of the plugin {plugin.id}" in done.err
    assert "nothing else to do" in done.out
    assert machine.path(plugin.path).read_bytes() == before

    real_plugins.turn_off(machine, plugin)
    [(_, server)] = servers(machine, plugin)
    assert server["state"] == "off"
    machine.as_user("alice", f"mcpwrap wrap {plugin.agent} --yes")


@only_in_test_all("mutation twin: what the story above sees comes of the table alone")
def test_without_the_table_nothing_of_plugins_is_seen(agents_machine: Machine) -> None:
    machine = agents_machine
    for plugin in PLUGINS:
        machine.as_user("alice", plugin.install)
    assert all(servers(machine, plugin) for plugin in PLUGINS)
    with machine.patched("cli/agents/discovery", "for row in PLUGINS:", "for row in ():"):
        assert not any(servers(machine, plugin) for plugin in PLUGINS)
