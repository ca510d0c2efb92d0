"""ntfy: what is published comes as server-sent events, and answers are published."""

import itertools
import json
import queue

import harness
from harness import PATIENCE_S, Http, until


class Platform(harness.Platform):
    name = "ntfy"

    def __init__(self):
        super().__init__()
        self.http, self.ids = Http(self.serve), itertools.count(1)
        self.listeners, self.listener = queue.Queue(), None

    def env(self):
        return {"NTFY_TOPIC": "topic", "NTFY_TOKEN": "ntfy-token", "NTFY_SERVER_URL": self.http.url}

    def serve(self, request):
        assert request.headers["authorization"] == "Bearer ntfy-token"
        if request.method == "GET":
            assert request.path == "/topic/sse", request.path
            handler = request.handler
            handler.send_response(200)
            handler.send_header("content-type", "text/event-stream")
            handler.end_headers()
            self.listeners.put(handler)
            # It says nothing more: this waits for its end.
            handler.rfile.read(1)
            return None
        assert (request.method, request.path) == ("POST", "/topic"), request.path
        return self.take(request.body.decode()), {"id": "out"}

    def listening(self, stage):
        self.listener = self.listeners.get(timeout=PATIENCE_S)

    def say(self, text):
        event = {"id": f"m-{next(self.ids)}", "event": "message", "topic": "topic", "message": text}
        self.listener.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.listener.wfile.flush()


def case_the_channel_says_what_runs_it(stage):
    platform = stage.platform
    platform.listening(stage)
    row = until("it has described itself", lambda: (row := stage.row())["sdk_version"] and row)
    assert (row["adapter"], row["state"], row["display_name"]) == ("ntfy", "started", "ntfy"), row


def case_a_test_message_that_is_refused_says_why(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.status = 403
    status, said = stage.daemon.call("POST", f"/api/channels/{stage.name}/test", {"recipient": "ops"})
    assert (status, said["status"]) == (502, "refused") and "403" in said["error"], (status, said)
    send = stage.send_with("refused", "sent", "unknown")
    assert send["status"] == "refused" and "403" in send["reason"], send


class Unset(Platform):
    """Without its topic."""

    def env(self):
        return {"NTFY_SERVER_URL": self.http.url}


def case_an_adapter_without_its_values_says_which(stage):
    row = until("it is given up", lambda: (row := stage.row())["state"] == "failed" and row)
    assert "NTFY_TOPIC" in row["last_error"], row
    assert (row["configured"], row["setup_steps"][0]) == (False, "Set Topic."), row


case_an_adapter_without_its_values_says_which.platform = Unset
