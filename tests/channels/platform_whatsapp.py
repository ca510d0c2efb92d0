"""WhatsApp by its cloud API: messages come to the adapter's own listener, signed; answers go out over HTTP."""

import hashlib
import hmac
import itertools

import harness
from harness import PICTURE, Http, fetch, lasting_port, listens, post


class Platform(harness.Platform):
    name = "whatsapp"
    shows_pictures = True

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
        assert request.path == "/100/messages" and body["to"] == "15551234567", (request.path, body)
        content = body[body["type"]]
        if body["type"] == "text":
            status = self.take(content["body"])
        else:
            status = self.take(content.get("caption", content.get("filename")), (body["type"], content["link"]))
        return status, {"messages": [{"id": "wamid.out"}]} if status == 200 else {"error": {"message": "not allowed"}}

    def listening(self, stage):
        listens(self.port)

    def say(self, text):
        message = {"id": f"wamid.{next(self.ids)}", "from": "15551234567", "type": "text", "text": {"body": text}}
        contacts = [{"profile": {"name": "Ann"}, "wa_id": "15551234567"}]
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


def case_the_listener_is_verified_and_wrong_signatures_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    url = f"http://127.0.0.1:{platform.port}/webhook?hub.mode=subscribe&hub.challenge=c1&hub.verify_token="
    assert fetch("GET", url + "verify-token") == (200, b"c1")
    assert fetch("GET", url + "other")[0] == 403
    assert post(platform.port, {}, lambda content: {"X-Hub-Signature-256": "sha256=" + "0" * 64}) == 401
    platform.say("first-words")
    platform.answer_with("first-words")
