"""A server over standard input and output whose tools are not what it says they are."""

import json
import sys

OBJECT = {"type": "object"}
SCHEMAS = {
    "good": OBJECT,
    "text": "anything",
    "list": {"type": "array"},
    "nothing": None,
    "wrong": {"type": "object", "properties": {"a": {"type": "nonsense"}}, "required": "all"},
    "endless": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    "promise": OBJECT,
    "large": OBJECT,
    "change": OBJECT,
}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name, schema):
    # What "promise" gives is no object.
    promised = {"outputSchema": {"type": "object", "required": ["sum"]}} if name == "promise" else {}
    return {"name": name, "description": name, "inputSchema": schema, **promised}


def call(name):
    if name == "promise":
        return {"content": {"not": "a list"}, "structuredContent": [7]}
    if name == "change":
        del SCHEMAS["promise"]
        SCHEMAS["late"] = OBJECT
        send({"method": "notifications/tools/list_changed"})
    text = "x" * (100 << 20) if name == "large" else f"it is {name}"
    return {"content": [{"type": "text", "text": text}]}


for line in sys.stdin:
    message = json.loads(line)
    method, key, params = message.get("method"), message.get("id"), message.get("params", {})
    if key is None:
        continue
    result = {}
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {}}
    elif method == "tools/list":
        result = {"tools": [tool(name, schema) for name, schema in SCHEMAS.items()]}
    elif method == "tools/call":
        known = params["name"] in SCHEMAS
        result = call(params["name"]) if known else {"isError": True, "content": [{"type": "text", "text": "it is gone"}]}
    send({"id": key, "result": result})
