"""A scripted MCP server over standard input and output that asks its client for what the arguments of its tools say.

`ask` sends the requests and gives the answers. `leave` sends them and waits for a call of `go` instead, as do `die`, which then ends,
and `take_back`, which then cancels them. `flood` sends them and is done. `told` gives what the client said of itself. Answers are also written to the file `answers`, one a line. With the argument
`stateless` it speaks the version that asks in results; with `early` it asks before any call.
"""

import json
import os
import sys

MODES = sys.argv[1:]
STATELESS = "stateless" in MODES
NAMES = ["ask", "leave", "die", "take_back", "go", "flood", "told", "early"]
GONE = []
TOLD = {}
ANSWERS = {}
COUNT = [0]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(content):
    return {"content": [{"type": "text", "text": content if isinstance(content, str) else json.dumps(content)}]}


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    message = json.loads(line)
    if "method" in message:
        serve(message)
    else:
        ANSWERS[message["id"]] = {key: message[key] for key in ("result", "error") if key in message}
        with open("answers", "a") as file:
            file.write(json.dumps(ANSWERS[message["id"]]) + "\n")


def ask(requests):
    keys = []
    for request in requests:
        COUNT[0] += 1
        keys.append(request.pop("id", f"q{COUNT[0]}"))
        send({"id": keys[-1], **request})
    return keys


def answers(keys):
    while any(key not in ANSWERS for key in keys):
        read()
    return [ANSWERS[key] for key in keys]


def call(params):
    name, arguments = params["name"], params.get("arguments", {})
    requests = arguments.get("requests", [])
    if name == "told":
        return text(TOLD if not STATELESS else params["_meta"])
    if STATELESS:
        if "inputResponses" not in params:
            wanted = {f"q{at}": request for at, request in enumerate(requests)}
            return {"resultType": "input_required", "inputRequests": wanted, "requestState": "s1"}
        if arguments.get("again"):
            return {"resultType": "input_required", "requestState": "s2"}
        return text({"answers": params["inputResponses"], "state": params["requestState"]})
    if name == "go":
        GONE.append(True)
        return text("went")
    if name == "early":
        return text(answers(["early"]))
    if "stray" in arguments:
        send({"id": "nobody asked", "result": {"action": "accept"}})
        send({"id": 999999, "result": {"role": "assistant"}})
        send({"method": "notifications/elicitation/complete", "params": {"elicitationId": "x"}})
    keys = ask(requests)
    if name == "flood":
        return text("done")
    while name != "ask" and not GONE:
        read()
    GONE.clear()
    if name == "leave":
        return text("left")
    if name == "die":
        os._exit(7)
    if name == "take_back":
        for key in keys:
            send({"method": "notifications/cancelled", "params": {"requestId": key}})
        return text(answers(ask([{"method": "ping"}])))
    return text(answers(keys))


def serve(message):
    method, key = message["method"], message.get("id")
    if key is None:
        if method == "notifications/initialized" and "early" in MODES:
            send({"id": "early", "method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}})
        return
    if method == "initialize" and STATELESS:
        return send({"id": key, "error": {"code": -32601, "message": "no"}})
    if method == "initialize":
        TOLD.update(message["params"]["capabilities"])
        version = next((mode for mode in MODES if mode.startswith("20")), message["params"]["protocolVersion"])
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = {"tools": [{"name": n, "description": f"The tool {n}", "inputSchema": {"type": "object"}} for n in NAMES]}
    elif method == "tools/call":
        result = call(message["params"])
    else:
        result = {}
    send({"id": key, "result": result})


while True:
    read()
