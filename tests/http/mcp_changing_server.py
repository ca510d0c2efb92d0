"""An MCP server over standard input and output whose tools are those of the file tools.json in its directory.

It writes the value of its variable TOKEN to token.txt there.
"""

import json
import os
import sys

WAITING = []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools():
    with open(os.path.join(os.environ["HOME"], "tools.json")) as file:
        return json.load(file)


with open(os.path.join(os.environ["HOME"], "token.txt"), "w") as token:
    token.write(os.environ.get("TOKEN", ""))
for line in sys.stdin:
    message = json.loads(line)
    method, key = message.get("method"), message.get("id")
    if key is None:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": tools()}
    elif method == "tools/call" and message["params"]["name"] == "notify":
        # Answered when the client has asked twice: then it has taken in the first of the two lists.
        WAITING[:] = [key, 2]
        send({"method": "notifications/tools/list_changed"})
        continue
    else:
        result = {"content": [{"type": "text", "text": "called " + str(message["params"].get("name"))}]}
    send({"id": key, "result": result})
    if method == "tools/list" and WAITING:
        WAITING[1] -= 1
        if WAITING[1]:
            send({"method": "notifications/tools/list_changed"})
        else:
            send({"id": WAITING[0], "result": {"content": [{"type": "text", "text": "changed"}]}})
            WAITING.clear()
