"""Call of a function of this folder, inside the machine, with its result printed as JSON.

`python3 -m tests.system.guest.call MODULE FUNCTION ARGUMENTS`, where ARGUMENTS is a JSON list.
"""

import importlib
import json
import sys

if __name__ == "__main__":
    module, function, arguments = sys.argv[1:]
    found = getattr(importlib.import_module(f"tests.system.guest.{module}"), function)
    result = found(*json.loads(arguments))
    print(json.dumps(result), flush=True)
