"""WhatsApp by its cloud API: messages come to the adapter's own listener, signed; answers go out over HTTP."""

import hashlib
import hmac
import itertools

import harness
from harness import PICTURE, RECORDING, Http, fetch, lasting_port, listens, post, until

ANN = "15551234567"


class Platform(harness.Platform):
    name = "whatsapp"
    shows_pictures = True
    config = f'[channels]\nallow_send_to = ["whatsapp:{ANN}"]\n'

    def __init__(self):
        super().__init__()
        self.http, self.port, self.ids = Http(self.serve), lasting_port(), itertools.count(1)

    def env(self):
        return {"WHATSAPP_PHONE_NUMBER_ID": "100", "WHATSAPP_ACCESS_TOKEN": "whatsapp-token", "WHATSAPP_APP_SECRET": "app-secret",
                "WHATSAPP_VERIFY_TOKEN": "verify-token", "WHATSAPP_CLOUD_API_BASE": self.http.url,
                "WHATSAPP_WEBHOOK_PORT": self.port, "WHATSAPP_BIND_HOST": "127.0.0.1"}

    def serve(self, request):
        assert request.headers["authorization"] == "Bearer whatsapp-token"
        body = request.json()
        assert request.path == "/100/messages" and body["to"] == ANN, (request.path, body)
        content, kind = body[body["type"]], body["type"]
        if kind == "text":
            status = self.take(content["body"])
        elif kind == "location":
            status = self.take(kind, (content["latitude"], content["longitude"]))
        else:
            status = self.take(content.get("caption", content.get("filename", kind)), (kind, content["link"]))
        return status, {"messages": [{"id": "wamid.out"}]} if status == 200 else {"error": {"message": "not allowed"}}

    def listening(self, stage):
        listens(self.port)

    def say(self, text, **other):
        said = other or {"type": "text", "text": {"body": text}}
        message = {"id": f"wamid.{next(self.ids)}", "from": ANN, **said}
        contacts = [{"profile": {"name": "Ann"}, "wa_id": ANN}]
        value = {"messaging_product": "whatsapp", "messages": [message], "contacts": contacts}
        body = {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [{"value": value, "field": "messages"}]}]}
        assert post(self.port, body, sign) == 200


def sign(content):
    return {"X-Hub-Signature-256": "sha256=" + hmac.new(b"app-secret", content, hashlib.sha256).hexdigest()}


def case_pictures_and_files_of_an_agent_are_sent(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.sends_with_tool(message="a-caption", image_url=PICTURE)
    platform.say("first-words")
    assert platform.answer_with("a-caption")[1] == ("image", PICTURE), platform.log
    stage.send_with("sent")
    stage.sends_with_tool(file_url=PICTURE, filename="report.pdf")
    platform.say("second-words")
    assert platform.answer_with("report.pdf")[1] == ("document", PICTURE), platform.log


def case_a_picture_that_is_refused_is_called_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    take = platform.take
    platform.take = lambda text, more=None: 403 if more else take(text)
    stage.sends_with_tool(message="a-caption", image_url=PICTURE)
    platform.say("first-words")
    platform.answer_with("first-words")
    assert "403" in stage.send_with("refused")["reason"], stage.sends()


def case_recordings_and_places_of_an_agent_are_sent(stage):
    """A recording is played, and not shown as a file."""
    platform = stage.platform
    platform.listening(stage)
    stage.sends_with_tool(file_url=RECORDING)
    platform.say("first-words")
    assert platform.answer_with("audio")[1] == ("audio", RECORDING), platform.log
    stage.sends_with_tool(message="a-text", latitude=48.2, longitude=16.4)
    platform.say("second-words")
    assert platform.answer_with("location")[1] == (48.2, 16.4), platform.log
    until("the text is there", lambda: platform.count("a-text"))
    until("all were sent", lambda: [send["status"] for send in stage.sends()] == ["sent"] * 5)


def case_a_recording_and_a_place_that_are_refused_are_called_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    take = platform.take
    platform.take = lambda text, more=None: 403 if more else take(text)
    for text, what in [("first-words", {"file_url": RECORDING}), ("second-words", {"latitude": 48.2, "longitude": 16.4})]:
        stage.sends_with_tool(**what)
        platform.say(text)
        platform.answer_with(text)
    refused = until("both are refused", lambda: len(found := [send for send in stage.sends() if send["status"] == "refused"]) == 2 and found)
    assert all("403" in send["reason"] for send in refused), refused


def case_of_what_people_send_only_texts_come_in(stage):
    """The adapter of the SDK leaves all else out, and says to the platform that it has it."""
    platform = stage.platform
    platform.listening(stage)
    for kind, content in [("image", {"id": "media-1", "mime_type": "image/png", "caption": "a-caption"}),
                          ("audio", {"id": "media-2", "voice": True}), ("location", {"latitude": 48.2, "longitude": 16.4})]:
        platform.say(None, type=kind, **{kind: content})
    platform.say("first-words")
    platform.answer_with("first-words")
    assert stage.row()["messages_received"] == 1, stage.row()


class ByGateway(Platform):
    """By a gateway, which takes texts only, and brings messages itself."""

    def env(self):
        return {"WHATSAPP_GATEWAY_URL": self.http.url}

    def serve(self, request):
        assert (request.method, request.path) == ("POST", "/message/send"), request.path
        body = request.json()
        status = self.take(body["text"], body["to"])
        return status, {}


def case_a_gateway_gets_all_as_texts(stage):
    platform = stage.platform
    until("it is started", lambda: stage.row()["state"] == "started")
    for wanted in [{"message": "a-text"}, {"message": "a-caption", "image_url": PICTURE}, {"file_url": RECORDING}]:
        stage.model.calls = "channel_send", {"channel": stage.name, "recipient": ANN, "message": "", **wanted}
        stage.tell("go")
    for part in ("a-text", PICTURE, RECORDING):
        assert platform.answer_with(part)[1] == ANN, platform.log
    assert platform.count("a-caption") and not platform.count("upported"), platform.log
    until("all were sent", lambda: [send["status"] for send in stage.sends()] == ["sent"] * 3)
    platform.status = 403
    stage.model.calls = "channel_send", {"channel": stage.name, "recipient": ANN, "message": "last-words"}
    stage.tell("go")
    assert "403" in stage.send_with("refused")["reason"], stage.sends()


case_a_gateway_gets_all_as_texts.platform = ByGateway


def case_the_listener_is_verified_and_wrong_signatures_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    url = f"http://127.0.0.1:{platform.port}/webhook?hub.mode=subscribe&hub.challenge=c1&hub.verify_token="
    assert fetch("GET", url + "verify-token") == (200, b"c1")
    assert fetch("GET", url + "other")[0] == 403
    assert post(platform.port, {}, lambda content: {"X-Hub-Signature-256": "sha256=" + "0" * 64}) == 401
    platform.say("first-words")
    platform.answer_with("first-words")
