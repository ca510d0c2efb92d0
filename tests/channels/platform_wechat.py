"""WeChat: signed in with a QR code that the daemon's API gives, then long polls; answers need the token of their chat."""

import base64
import itertools
import queue
import threading

import harness
from harness import PIXEL, Http, until

VOICE = b"#!SILK_V3-voice"


class Platform(harness.Platform):
    name = "wechat"
    signs_out = True
    config = '[web.fetch]\nssrf_allowed_hosts = ["127.0.0.0/8"]\n'

    def __init__(self):
        super().__init__()
        self.http, self.ids = Http(self.serve), itertools.count(1)
        self.changed, self.messages = threading.Condition(), []
        #: What was said before a sign-in is not brought; the state of the code; polls so far.
        self.begin, self.code_state, self.polls = 0, "wait", 0
        self.codes = queue.Queue()
        #: To whom it showed that it types, and with which ticket.
        self.typing = []

    def env(self):
        return {"WECHAT_API_BASE_OVERRIDE": self.http.url, "WECHAT_INITIAL_BACKOFF_SECS": 0.05, "WECHAT_MAX_BACKOFF_SECS": 0.2}

    def serve(self, request):
        path = request.path.removeprefix("/ilink/bot/")
        if path.startswith("get_bot_qrcode"):
            return 200, {"qrcode": "poll-key", "qrcode_img_content": f"https://example.org/scan/{next(self.ids)}"}
        if path.startswith("get_qrcode_status"):
            with self.changed:
                state = self.code_state
                if state == "confirmed":
                    self.begin, self.code_state = len(self.messages), "wait"
                    return 200, {"status": state, "bot_token": "wechat-token"}
            return 200, {"status": state}
        assert request.headers["authorization"] == "Bearer wechat-token"
        if path == "getconfig":
            return 200, {"typing_ticket": "ticket"}
        if path == "sendtyping":
            self.typing.append((request.json()["to_user_id"], request.json()["typing_ticket"]))
            return 200, {}
        if path == "getupdates":
            return 200, self.updates(request.json()["get_updates_buf"])
        assert path == "sendmessage", path
        message = request.json()["msg"]
        assert message["to_user_id"] == "ann", message
        status = self.take(message["item_list"][0]["text_item"]["text"], message["context_token"])
        return status, {}

    def updates(self, cursor):
        with self.changed:
            self.polls += 1
            self.changed.notify_all()
            at = int(cursor) if cursor else self.begin
            self.changed.wait_for(lambda: len(self.messages) > at, timeout=0.5)
            return {"msgs": self.messages[at:], "get_updates_buf": str(len(self.messages)), "longpolling_timeout_ms": 500}

    def listening(self, stage):
        """Signs in as the page does: a code, its state, and the state once it was scanned."""
        path = f"/api/channels/{self.name}/qr"
        status, code = until("a code is shown", lambda: shown(stage.daemon.call("POST", f"{path}/start")))
        self.qr = code
        assert stage.daemon.get(f"{path}/status")["status"] == "pending"
        with self.changed:
            before, self.code_state = self.polls, "confirmed"
        until("it is signed in", lambda: stage.daemon.call("GET", f"{path}/status")[1].get("status") == "authenticated")
        with self.changed:
            assert self.changed.wait_for(lambda: self.polls > before, timeout=harness.PATIENCE_S), "it polls"

    def say(self, text, **item):
        with self.changed:
            number = len(self.messages)
            self.messages.append({"from_user_id": "ann", "from_user_name": "Ann", "to_user_id": "bot", "message_type": 1,
                                  "msg_id": f"m-{number}", "context_token": f"token-{number}",
                                  "item_list": [item or {"type": 1, "text_item": {"text": text}}]})
            self.changed.notify_all()
        return f"token-{number}"


def case_a_voice_message_and_a_file_reach_the_agent(stage):
    """The agent reads which upload each is."""
    platform = stage.platform
    platform.listening(stage)
    files = Http(lambda request: (200, VOICE)).url
    for what, item in [("a voice message", {"type": 3, "voice_item": {"url": f"{files}/a.silk", "duration": 2}}),
                       ("a file", {"type": 4, "file_item": {"url": f"{files}/b", "file_name": "b.bin"}})]:
        platform.say(None, **item)
        text, _ = platform.answer_with(" bytes]")
        assert f"[User sent {what}: upload " in text, text
        upload = text.split("upload ")[1].split(",")[0]
        kept = harness.fetch("GET", f"{stage.daemon.url}/api/uploads/{upload}")
        assert kept == (200, VOICE), (text, kept)


def case_a_picture_reaches_the_agent(stage):
    platform = stage.platform
    platform.listening(stage)
    picture = Http(lambda request: (200, PIXEL)).url
    platform.say(None, type=2, image_item={"url": f"{picture}/a.png"})
    stage.send_with("sent")
    assert base64.b64encode(PIXEL).decode() in str(stage.model.messages), stage.model.messages


def shown(answer):
    """A code that waits to be scanned: not one of an adapter that has ended."""
    status, body = answer
    return (status, body) if status == 200 and body["status"] == "pending" else None


def case_the_code_is_what_the_app_scans(stage):
    platform = stage.platform
    platform.listening(stage)
    assert platform.qr["qr_code"].startswith("https://example.org/scan/"), platform.qr
    platform.say("first-words")
    platform.answer_with("first-words")
    status, said = stage.daemon.call("GET", f"/api/channels/{stage.name}/qr")
    assert "wechat-token" not in str(said), said


def case_a_person_sees_that_an_answer_is_written(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    platform.say("first-words")
    until("it types", lambda: platform.typing)
    assert set(platform.typing) == {("ann", "ticket")} and not platform.log, (platform.typing, platform.log)
    stage.model.gate.set()
    platform.answer_with("first-words")
