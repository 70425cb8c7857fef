"""Agents in common use with a hub, and a model that calls its tools. Runs inside, as alice."""

import re
import threading
from typing import Any

from tests.system.guest.messages.agents import AGENTS
from tests.system.guest.messages.model import APIS, Model, results_in

Json = dict[str, Any]


def used(agent: str, hub: str, *rounds: list[tuple[str, Json]]) -> Json:
    """Have an agent make the calls of each round at once.

    Returns the names of the tools as its model got them, first and last; how many results its model
    got; and the text of the request that had them all.
    """
    with Model(hub, *([(tool, given) for tool, given in calls] for calls in rounds)) as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        AGENTS[agent](hub, ["mcpwrap-connect", hub], model.url)
        model.shutdown()
        asked = list(model.asked)
    prefixes = {form.format(hub) for _, form in APIS.values()}
    last = max(asked, key=results_in)
    first = next((text for text in asked if _names(text, prefixes)), "")
    return {
        "names": _names(first, prefixes),
        "names at the end": _names(last, prefixes),
        "results": results_in(last),
        "last": last.replace("\\", ""),
    }


def _names(text: str, prefixes: set[str]) -> list[str]:
    """Return the names of tools in a request, those that are called among them."""
    found = re.findall(r'"name": ?"([^"]+)"', text)
    return sorted({name for name in found if name.startswith(tuple(prefixes))})
