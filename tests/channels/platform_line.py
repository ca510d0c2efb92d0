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

        #: Where people write, and whom what is pushed is for.
        self.source, self.chat = {"type": "user", "userId": "U-ann"}, "U-ann"

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
            assert request.path == "/v2/bot/message/push" and body["to"] == self.chat, (request.path, body)
            status = self.take(text, "push")
        return status, {} if status == 200 else {"message": "not allowed"}

    def listening(self, stage):
        listens(self.port)

    def say(self, text, **other):
        number = next(self.ids)
        token = f"token-{number}"
        said = other or {"type": "text", "text": text}
        event = {"type": "message", "replyToken": token, "timestamp": int(time.time() * 1000),
                 "source": self.source, "message": {"id": f"m-{number}", **said}}
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


def case_of_what_people_send_only_texts_come_in(stage):
    """The adapter of the SDK leaves all else out, and says to the platform that it has it."""
    platform = stage.platform
    platform.listening(stage)
    for said in [{"type": "image", "contentProvider": {"type": "line"}}, {"type": "audio", "duration": 900},
                 {"type": "location", "latitude": 48.2, "longitude": 16.4}]:
        platform.say(None, **said)
    platform.say("first-words")
    platform.answer_with("first-words")
    assert stage.row()["messages_received"] == 1, stage.row()


def case_an_answer_to_a_group_goes_to_the_group(stage):
    platform = stage.platform
    platform.source, platform.chat = {"type": "group", "groupId": "G-1", "userId": "U-ann"}, "G-1"
    platform.listening(stage)
    token = platform.say("first-words")
    assert platform.answer_with("first-words")[1] == token, platform.log
    stage.sends_with_tool(message="beside", image_url=PICTURE)
    platform.say("second-words")
    assert platform.answer_with(PICTURE)[1] == "push", platform.log


def case_a_picture_that_is_refused_is_called_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    take = platform.take
    platform.take = lambda text, more: 403 if more == "push" else take(text, more)
    stage.sends_with_tool(message="a-caption", image_url=PICTURE)
    platform.say("first-words")
    platform.answer_with("first-words")
    assert "403" in stage.send_with("refused")["reason"], stage.sends()
