"""A scripted MCP server over standard input and output. Its argument says how it behaves."""

import json
import os
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
TOOLS = ["echo", "env", "die", "hang", "change"] + [f"extra_{n}" for n in range(int(os.environ.get("EXTRA", "0")))]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(content):
    return {"content": [{"type": "text", "text": content}]}


def call(name, arguments):
    if name == "echo":
        return text("echo " + arguments.get("text", ""))
    if name == "env":
        return text(os.environ.get(arguments["name"], "none"))
    if name == "die":
        os._exit(7)
    if name == "hang":
        time.sleep(3600)
    if name == "change":
        TOOLS.append("late")
        send({"method": "notifications/tools/list_changed"})
        return text("changed")
    return text("unknown")


sys.stderr.write("started with " + os.environ.get("TOKEN", "no token") + "\n")
sys.stderr.flush()
if MODE == "exit":
    sys.stderr.write("it cannot start\n")
    sys.exit(3)
if MODE == "flood":
    while True:
        sys.stdout.write("x" * 65536)
for line in sys.stdin:
    message = json.loads(line)
    method, key = message.get("method"), message.get("id")
    if key is None:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": n, "description": f"The tool {n}", "inputSchema": {"type": "object"}} for n in TOOLS]}
    elif method == "tools/call":
        result = call(message["params"]["name"], message["params"].get("arguments", {}))
    else:
        result = {}
    send({"id": key, "result": result})
