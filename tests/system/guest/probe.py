"""Probe server: runs the test's code with its own account, its sandbox, its limits.

Its one tool runs Python; the answer is the value of the name `result`. A code may import the files
beside this one, by their full names.
"""

import json
import sys

sys.path.insert(0, "/opt/bed")
sys.dont_write_bytecode = True

for line in sys.stdin:
    call = json.loads(line)
    names = {"result": None}
    try:
        exec(call["params"]["arguments"]["code"], names)
        result: object = names["result"]
    except OSError as error:
        result = f"OSError {error.errno}"
    answer = {"jsonrpc": "2.0", "id": call["id"], "result": {"told": result}}
    print(json.dumps(answer), flush=True)
