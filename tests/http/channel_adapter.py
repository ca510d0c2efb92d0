"""An adapter that a test plays itself: what comes on stdin goes to the test, and what the test says goes to stdout.

A line that is not JSON is answered as the SDK answers it, unless MUTE is set. Lines of the test that begin with "!" are
for this script: "!exit <code>", "!stderr <text>", "!big <bytes>", "!tree <bytes>" (a poll of so many bytes), "!env" (the names
of its variables as a message), "!deaf" (it outlives its input), "!stuck" (it reads no more commands)."""

import json
import os
import socket
import sys
import threading

if "--describe" in sys.argv:
    fields = [{"key": "TEST_TOKEN", "label": "Token", "type": "secret", "required": True},
              {"key": "TEST_ROOM", "label": "Room", "type": "text", "required": False}]
    print(json.dumps({"name": "test", "display_name": "Test", "description": "", "fields": fields, "sdk_version": "1"}))
    sys.exit(0)

lock = threading.Lock()
deaf = threading.Event()
stuck = threading.Event()
test = socket.create_connection(("127.0.0.1", int(os.environ["TEST_PORT"])))


def emit(line):
    with lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def follow():
    for line in test.makefile("r", encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("!exit "):
            os._exit(int(line[6:]))
        elif line.startswith("!stderr "):
            sys.stderr.write(line[8:] + "\n")
            sys.stderr.flush()
        elif line.startswith("!big "):
            emit("x" * int(line[5:]))
        elif line.startswith("!tree "):
            options = '"",' * (int(line[6:]) // 3) + '""'
            emit('{"method":"message","params":{"user_id":"zed","user_name":"Z","content":{"Poll":{"question":"q",'
                 '"options":[%s]}}}}' % options)
        elif line == "!env":
            text = " ".join(sorted(os.environ))
            emit(json.dumps({"method": "message", "params": {"user_id": "env", "user_name": "E", "text": text}}))
        elif line == "!deaf":
            deaf.set()
        elif line == "!stuck":
            stuck.set()
        else:
            emit(line)
    os._exit(0)


threading.Thread(target=follow, daemon=True).start()
for line in sys.stdin:
    if stuck.is_set():
        threading.Event().wait()
    try:
        json.loads(line)
    except ValueError as error:
        if "MUTE" not in os.environ:
            emit(json.dumps({"method": "error", "params": {"message": "invalid JSON: %s" % error}}))
        continue
    test.sendall(line.encode())
if deaf.is_set():
    threading.Event().wait()
