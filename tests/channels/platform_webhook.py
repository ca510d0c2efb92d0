"""The webhook adapter: signed calls in both directions."""

import hashlib
import hmac
import itertools
import time

import harness
import platform_ntfy
from harness import Http, lasting_port, listens, post, until

MODULE = "librefang.sidecar.adapters.webhook"
#: The adapter as it is, but that it may call back an address of this machine.
NEARBY = f"""
import {MODULE} as webhook
from librefang.sidecar import run_stdio_main

webhook._validate_ip_address = lambda address: None
run_stdio_main(webhook.WebhookAdapter)
"""


class Platform(harness.Platform):
    name = "webhook"
    more = "threading = true"
    args = ["-c", NEARBY, "-m", MODULE]

    def __init__(self):
        super().__init__()
        self.http, self.port, self.ids = Http(self.serve), lasting_port(), itertools.count(1)

    def env(self):
        return {**self.own(), "WEBHOOK_CALLBACK_URL": f"{self.http.url}/callback"}

    def own(self):
        """What it needs to listen."""
        return {"WEBHOOK_SECRET": "webhook-secret", "WEBHOOK_LISTEN_PORT": self.port, "WEBHOOK_BIND_HOST": "127.0.0.1"}

    def serve(self, request):
        body = request.json()
        assert (request.method, request.path, body["recipient_id"]) == ("POST", "/callback", "ann"), (request.path, body)
        assert request.headers["x-webhook-signature"] == signature(request.body), "it is signed"
        return self.take(body["message"]), {}

    def listening(self, stage):
        listens(self.port)

    def say(self, text, message_id=None, **more):
        metadata = {"message_id": message_id or f"m-{next(self.ids)}"}
        body = {"sender_id": "ann", "sender_name": "Ann", "message": text, "metadata": metadata, **more}
        assert post(self.port, body, sign) == 200


def signature(content):
    return "sha256=" + hmac.new(b"webhook-secret", content, hashlib.sha256).hexdigest()


def sign(content, age_s=0):
    return {"X-Webhook-Signature": signature(content), "X-Webhook-Timestamp": str(int((time.time() - age_s) * 1000))}


def case_each_thread_is_a_conversation_of_its_own(stage):
    platform = stage.platform
    platform.listening(stage)
    for text, thread, known in [("first-words", "t-1", []), ("second-words", "t-2", []), ("third-words", "t-1", ["first-words"])]:
        platform.say(text, thread_id=thread)
        platform.answer_with(text)
        read = str(stage.model.messages)
        assert [said for said in ("first-words", "second-words") if said in read and said != text] == known, read
    until("all were sent", lambda: [send["status"] for send in stage.sends()] == ["sent"] * 3)


def case_in_a_group_the_agent_reads_who_writes(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words", is_group=True)
    assert platform.answer_with("first-words")[0] == "echo: Ann: first-words", platform.log


def case_wrong_and_old_signatures_are_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    body = {"sender_id": "ann", "message": "forged-words"}
    assert post(platform.port, body, lambda content: {"X-Webhook-Signature": "sha256=" + "0" * 64}) == 403
    assert post(platform.port, body, lambda content: sign(content, age_s=3600)) == 403
    platform.say("first-words")
    platform.answer_with("first-words")
    assert stage.row()["messages_received"] == 1, stage.row()


def case_a_message_is_not_answered_twice_after_a_kill(stage):
    """Its sender repeats it, as senders do that were cut off; the adapter forgot it, the daemon has not."""
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words", "again")
    platform.answer_with("first-words")
    stage.send_with("sent")
    stage.kill_adapter()
    platform.listening(stage)
    platform.say("first-words", "again")
    platform.say("second-words")
    platform.answer_with("second-words")
    assert platform.count("first-words") == 1, platform.log


class Silent(Platform):
    """Without an address to call back: inbound only."""

    args = None

    def env(self):
        return self.own()


def case_an_answer_without_a_way_out_is_called_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words")
    stage.model.asked("first-words")
    send = stage.send_with("sent", "refused", "unknown")
    assert send["status"] == "refused" and "WEBHOOK_CALLBACK_URL" in send["reason"], send
    assert stage.row()["messages_received"] == 1, stage.row()


case_an_answer_without_a_way_out_is_called_refused.platform = Silent


class Forwarding(Silent):
    """It hands everything on to another channel, without an agent."""

    def __init__(self):
        super().__init__()
        self.other = platform_ntfy.Platform()
        self.config = (f'{self.other.entry(default_conversation="topic")}\n'
                       '[channels]\nallow_send_to = ["ntfy:topic"]\n')

    def env(self):
        return {**self.own(), "WEBHOOK_DELIVER_ONLY": 1, "WEBHOOK_DELIVER": "ntfy"}


def case_a_message_is_handed_on_to_another_channel(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words")
    assert platform.other.answer_with("first-words")[0] == "first-words", platform.other.log
    assert stage.model.requests.empty(), "no agent is asked"


case_a_message_is_handed_on_to_another_channel.platform = Forwarding
