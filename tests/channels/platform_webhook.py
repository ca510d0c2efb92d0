"""The webhook adapter: inbound only, because it calls back no address of this machine."""

import hashlib
import hmac
import time

import harness
from harness import lasting_port, listens, post, until
from shared import ended


class Platform(harness.Platform):
    name = "webhook"
    is_shared = False

    def __init__(self):
        super().__init__()
        self.port = lasting_port()

    def env(self):
        return {"WEBHOOK_SECRET": "webhook-secret", "WEBHOOK_LISTEN_PORT": self.port, "WEBHOOK_BIND_HOST": "127.0.0.1"}

    def listening(self, stage):
        listens(self.port)

    def say(self, text, message_id="m-1"):
        body = {"sender_id": "ann", "sender_name": "Ann", "message": text, "metadata": {"message_id": message_id}}
        assert post(self.port, body, sign) == 200


def sign(content, age_s=0):
    signature = "sha256=" + hmac.new(b"webhook-secret", content, hashlib.sha256).hexdigest()
    return {"X-Webhook-Signature": signature, "X-Webhook-Timestamp": str(int((time.time() - age_s) * 1000))}


def case_a_message_comes_in_and_its_answer_has_no_way_out(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words")
    stage.model.asked("first-words")
    send = stage.send_with("sent", "refused", "unknown")
    assert send["status"] == "refused" and "WEBHOOK_CALLBACK_URL" in send["reason"], send
    assert stage.row()["messages_received"] == 1, stage.row()


def case_wrong_and_old_signatures_are_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    body = {"sender_id": "ann", "message": "forged-words"}
    assert post(platform.port, body, lambda content: {"X-Webhook-Signature": "sha256=" + "0" * 64}) == 403
    assert post(platform.port, body, lambda content: sign(content, age_s=3600)) == 403
    platform.say("first-words")
    stage.model.asked("first-words")
    assert stage.row()["messages_received"] == 1, stage.row()


def case_a_message_is_not_answered_twice_after_a_kill(stage):
    """Its sender repeats it, as senders do that were cut off; the adapter forgot it, the daemon has not."""
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words")
    stage.model.asked("first-words")
    stage.send_with("refused")
    stage.kill_adapter()
    platform.listening(stage)
    platform.say("first-words")
    platform.say("second-words", "m-2")
    stage.model.asked("second-words")
    causes = [send["preview"] for send in stage.sends() if "first-words" in send["preview"]]
    assert len(causes) == 1, causes


def case_the_daemon_is_killed_in_an_answer(stage):
    """The message was stored before: it is answered after the start, once."""
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    platform.say("first-words")
    stage.model.asked("first-words")
    stage.daemon.kill()
    ended(stage)
    stage.model.gate.set()
    stage.daemon.start()
    platform.listening(stage)
    first = stage.send_with("refused", "unknown", "sent")
    assert first["status"] == "refused" and "WEBHOOK_CALLBACK_URL" in first["reason"], first
    platform.say("first-words")
    platform.say("second-words", "m-2")
    stage.model.asked("second-words")
    until("the second one has ended", lambda: len([send for send in stage.sends() if send["status"] == "refused"]) == 2)
    assert len([send for send in stage.sends() if "first-words" in send["preview"]]) == 1, stage.sends()
