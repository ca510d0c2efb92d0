"""An MCP server over standard input and output that records its calls.

Its directory has tools.json, the list of its tools; calls.txt gets a line for each call, and while there is a file
named hang, calls are not answered.
"""

import json
import os
import sys

os.chdir(os.environ["HOME"])


def answer(method, params):
    if method == "initialize":
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if method == "tools/list":
        with open("tools.json") as file:
            return {"tools": json.load(file)}
    if method == "tools/call":
        with open("calls.txt", "a") as file:
            file.write(params["name"] + "\n")
        if os.path.exists("hang"):
            return None
        return {"content": [{"type": "text", "text": "called " + params["name"]}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if message.get("id") is None:
        continue
    result = answer(message.get("method"), message.get("params", {}))
    if result is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()
