"""LINE: messages come to the adapter's own listener, signed; the first answer goes with the token of its message."""

import base64
import hashlib
import hmac
import itertools
import time

import harness
from harness import PICTURE, Http, lasting_port, listens, post


class Platform(harness.Platform):
    name = "line"
    shows_pictures = True

    def __init__(self):
        super().__init__()
        self.http, self.port, self.ids = Http(self.serve), lasting_port(), itertools.count(1)

    def env(self):
        return {"LINE_CHANNEL_SECRET": "line-secret", "LINE_CHANNEL_ACCESS_TOKEN": "line-token", "LINE_API_BASE": self.http.url,
                "LINE_WEBHOOK_PORT": self.port, "LINE_BIND_HOST": "127.0.0.1"}

    def serve(self, request):
        assert request.headers["authorization"] == "Bearer line-token"
        if request.path == "/v2/bot/info":
            return 200, {"displayName": "Bot"}
        body = request.json()
        text = "\n".join(message.get("text") or message["originalContentUrl"] for message in body["messages"])
        if request.path == "/v2/bot/message/reply":
            status = self.take(text, body["replyToken"])
        else:
            assert request.path == "/v2/bot/message/push" and body["to"] == "U-ann", (request.path, body)
            status = self.take(text, "push")
        return status, {} if status == 200 else {"message": "not allowed"}

    def listening(self, stage):
        listens(self.port)

    def say(self, text):
        number = next(self.ids)
        token = f"token-{number}"
        event = {"type": "message", "replyToken": token, "timestamp": int(time.time() * 1000),
                 "source": {"type": "user", "userId": "U-ann"}, "message": {"type": "text", "id": f"m-{number}", "text": text}}
        assert post(self.port, {"events": [event]}, sign) == 200
        return token


def sign(content):
    return {"X-Line-Signature": base64.b64encode(hmac.digest(b"line-secret", content, hashlib.sha256)).decode()}


def case_a_wrong_signature_is_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    assert post(platform.port, {"events": []}, lambda content: {"X-Line-Signature": "AAAA"}) == 401
    platform.say("first-words")
    platform.answer_with("first-words")


def case_a_picture_of_an_agent_is_sent_and_its_caption_after_it(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.sends_with_tool(message="a-caption", image_url=PICTURE)
    platform.say("first-words")
    assert platform.answer_with(PICTURE) == (PICTURE, "push"), platform.log
    platform.answer_with("a-caption")
    stage.send_with("sent")


def case_a_file_with_a_link_is_sent_as_its_link(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.sends_with_tool(file_url=PICTURE, filename="report.pdf")
    platform.say("first-words")
    assert "report.pdf" in platform.answer_with(PICTURE)[0], platform.log
    stage.send_with("sent")


def case_a_token_that_is_refused_leads_to_a_push(stage):
    """The adapter takes the other way: that is no refusal."""
    platform = stage.platform
    platform.listening(stage)
    take = platform.take
    platform.take = lambda text, more: take(text, more) if more == "push" else 400
    platform.say("first-words")
    assert platform.answer_with("first-words")[1] == "push"
    assert stage.send_with("sent", "refused", "unknown")["status"] == "sent", stage.sends()
