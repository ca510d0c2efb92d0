"""Telegram: long polls over TLS. The host of its API is fixed, so the adapter reaches the scripted server through a proxy, and
trusts its authority."""

import base64
import itertools
import json
import threading
import urllib.parse

import certificates
import harness
from harness import PATIENCE_S, PICTURE, PIXEL, Http, until
from shared import ended

VOICE = b"OggS" + bytes(24) + b"OpusHead-voice"
#: The adapter as it is, but for the place of the files that it names: the daemon fetches them itself, past any proxy.
ELSEWHERE = """
import os
import librefang.sidecar.adapters.telegram as telegram
from librefang.sidecar import run_stdio_main

class Adapter(telegram.TelegramAdapter):
    def __init__(self):
        super().__init__()
        self.api_root = os.environ["TELEGRAM_FILES"]

run_stdio_main(Adapter)
"""
TOKEN, HOST, ANN, GROUP = "1234:telegram-token", "api.telegram.org", 42, -100
POLL = "poll-1"


class Platform(harness.Platform):
    name = "telegram"
    more = f'readable_paths = ["{certificates.authority_file().parent}"]'
    shows_pictures = takes_files = True
    config = f'[channels]\nallow_send_to = ["telegram:{ANN}"]\n'

    def __init__(self):
        super().__init__()
        self.proxy = Http(self.serve, certificates.server_context(HOST))
        self.changed, self.ids = threading.Condition(), itertools.count(1)
        #: What was not confirmed yet, polls so far, and what the other methods were called with.
        self.updates, self.polls, self.calls = [], 0, []

    def env(self):
        return {"TELEGRAM_BOT_TOKEN": TOKEN, "https_proxy": self.proxy.url, "SSL_CERT_FILE": certificates.authority_file()}

    def serve(self, request):
        url = urllib.parse.urlsplit(request.path)
        assert request.headers["host"] == HOST and url.path.startswith(f"/bot{TOKEN}/"), request.path
        method = url.path.removeprefix(f"/bot{TOKEN}/")
        if method == "getUpdates":
            query = urllib.parse.parse_qs(url.query)
            return 200, {"ok": True, "result": self.poll(int(query["offset"][0]))}
        if (request.headers["content-type"] or "").startswith("multipart/"):
            self.note(method, request.body)
            return answer(self.take(method), {"message_id": len(self.log)})
        body = request.json()
        self.note(method, body)
        text = body["rich_message"]["markdown"] if "rich_message" in body else body.get("text", body.get("caption"))
        if method == "editMessageText":
            return answer(self.edit(body["message_id"], text), True)
        if method == "getFile":
            return answer(400, None) if body["file_id"] == "gone" else answer(200, {"file_path": f"in/{body['file_id']}"})
        if method == "sendPoll":
            return answer(self.take(body["question"]), {"message_id": len(self.log), "poll": {"id": POLL}})
        if method == "sendLocation":
            return answer(self.take(f"{body['latitude']}, {body['longitude']}"), {"message_id": len(self.log)})
        if method not in ("sendMessage", "sendRichMessage", "sendPhoto"):
            return answer(200, True)
        at = len(self.log)
        return answer(self.take(text, body.get("message_thread_id")), {"message_id": at})

    def edit(self, at, text):
        if self.status == 200:
            self.log[at] = (text, self.log[at][1])
            self.sent.put(self.log[at])
        return self.status

    def poll(self, offset):
        """What is new. What comes before `offset` is confirmed, and comes no more; all else comes again."""
        with self.changed:
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
            self.polls += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.updates, timeout=0.5)
            return list(self.updates)

    def note(self, method, body):
        with self.changed:
            self.calls.append((method, body))

    def called(self, method):
        with self.changed:
            return [body for of, body in self.calls if of == method]

    def listening(self, stage):
        with self.changed:
            before = self.polls
            assert self.changed.wait_for(lambda: self.polls > before, timeout=PATIENCE_S), "it polls"

    def bring(self, **update):
        with self.changed:
            number = next(self.ids)
            self.updates.append({"update_id": number, **update})
            self.changed.notify_all()
            return number

    def say(self, text, chat=None, **more):
        """Says it three times over: the first half of the answer has it already."""
        message = {"message_id": next(self.ids), "text": text and " ".join([text] * 3), "from": {"id": ANN, "first_name": "Ann"},
                   "chat": chat or {"id": ANN, "type": "private"}, **more}
        self.bring(message=message)
        return more.get("message_thread_id")

    def command(self, name):
        """Says a command: once, as commands are marked."""
        entity = {"type": "bot_command", "offset": 0, "length": len(name) + 1}
        self.bring(message={"message_id": next(self.ids), "text": f"/{name}", "entities": [entity],
                            "from": {"id": ANN, "first_name": "Ann"}, "chat": {"id": ANN, "type": "private"}})

    def signs(self):
        """The signs that were put on messages, in order."""
        return [sign["emoji"] for body in self.called("setMessageReaction") for sign in body["reaction"]]

    def count(self, part):
        """Whole answers: one that was cut off stays as it is."""
        return sum(text.count(part) >= 3 for text, _ in self.log)


def answer(status, result):
    if status == 200:
        return 200, {"ok": True, "result": result}
    return status, {"ok": False, "error_code": status, "description": "Forbidden: bot was blocked by the user"}


def case_a_text_is_edited_while_it_is_written(stage):
    """The first part is sent, and then edited; the whole is never sent beside it."""
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    platform.say("first-words last-word")
    text, _ = platform.answer_with("first-words")
    assert text.count("last-word") < 3, text
    stage.model.gate.set()
    stage.send_with("sent")
    assert [text.count("last-word") for text, _ in platform.log] == [3], platform.log


def case_a_last_edit_that_is_refused_is_called_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    platform.say("first-words")
    platform.answer_with("first-words")
    platform.status = 403
    stage.model.gate.set()
    send = stage.send_with("sent", "refused", "unknown")
    assert send["status"] == "refused" and "blocked" in send["reason"], send


def case_the_reason_has_what_the_platform_says(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.status = 403
    platform.say("first-words")
    send = stage.send_with("sent", "refused", "unknown")
    assert send["status"] == "refused" and "403: Forbidden: bot was blocked" in send["reason"], send
    assert TOKEN not in send["reason"], send


def case_signs_are_put_on_a_message(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words")
    platform.answer_with("first-words")
    until("there are signs at its message", lambda: len(platform.called("setMessageReaction")) > 1)
    assert all(body["chat_id"] == str(ANN) for body in platform.called("setMessageReaction")), platform.calls
    assert platform.called("sendChatAction"), platform.calls


def case_an_answer_stays_in_its_thread(stage):
    platform = stage.platform
    platform.listening(stage)
    forum = {"id": GROUP, "type": "supergroup", "title": "Forum"}
    platform.say("first-words", chat=forum, message_thread_id=7)
    assert str(platform.answer_with("first-words")[1]) == "7", platform.log
    assert platform.calls[-1][1]["chat_id"] == str(GROUP), platform.calls


def case_what_was_brought_before_a_kill_is_not_answered_twice(stage):
    """An adapter that is killed has not confirmed its last update: the next one brings it again."""
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words")
    platform.answer_with("first-words")
    stage.send_with("sent")
    again = {"message_id": 1, "text": "first-words", "from": {"id": ANN, "first_name": "Ann"},
             "chat": {"id": ANN, "type": "private"}}
    assert platform.count("first-words") == 1, platform.log
    stage.kill_adapter()
    platform.listening(stage)
    platform.bring(message=again)
    platform.say("second-words")
    platform.answer_with("second-words")
    assert platform.count("first-words") == 1, platform.log


def case_a_button_counts_each_time_it_is_pressed(stage):
    platform = stage.platform
    platform.listening(stage)
    on = {"message_id": 900, "text": "Choose", "chat": {"id": ANN, "type": "private"}}
    for number in (1, 2):
        press = {"id": f"press-{number}", "from": {"id": ANN, "first_name": "Ann"}, "data": f"choice-{number}", "message": on}
        platform.bring(callback_query=press)
        platform.answer_with(f"choice-{number}")
    assert len(platform.called("answerCallbackQuery")) == 2, platform.calls


def case_a_picture_of_an_agent_is_sent(stage):
    platform = stage.platform
    platform.listening(stage)
    picture = {"channel": "telegram", "recipient": str(ANN), "message": "a-caption", "image_url": PICTURE}
    stage.model.calls = "channel_send", picture
    stage.tell("first-words")
    platform.answer_with("a-caption")
    stage.send_with("sent")
    assert platform.called("sendPhoto")[0]["photo"] == PICTURE, platform.calls


def case_a_picture_that_is_refused_is_called_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.status = 403
    picture = {"channel": "telegram", "recipient": str(ANN), "message": "a-caption", "image_url": PICTURE}
    stage.model.calls = "channel_send", picture
    stage.tell("first-words")
    send = stage.send_with("sent", "refused", "unknown")
    assert send["status"] == "refused" and "403" in send["reason"], send


def case_a_photo_that_cannot_be_fetched_is_named(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say(None, photo=[{"file_id": "gone"}], caption="a-caption")
    platform.answer_with("a-caption")


def case_the_sign_of_a_message_ends_after_a_kill_of_the_daemon(stage):
    """No message is left with the sign of one that is worked on."""
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    platform.say("first-words")
    stage.model.asked("first-words")
    until("it has a sign", lambda: platform.signs())
    stage.daemon.kill()
    ended(stage)
    stage.model.gate.set()
    stage.daemon.start()
    stage.send_with("sent", "unknown")
    until("its last sign says that it is done", lambda: platform.signs()[-1] == "🎉")


def case_a_place_of_an_agent_is_sent(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.sends_with_tool(message="a-text", latitude=48.2, longitude=16.4)
    platform.say("first-words")
    platform.answer_with("48.2, 16.4")
    assert platform.called("sendLocation")[0]["chat_id"] == str(ANN), platform.calls
    until("all were sent", lambda: [send["status"] for send in stage.sends()] == ["sent"] * 3)
    assert "a-text" in [text for text, _ in platform.log], platform.log


def case_votes_reach_the_agent_and_can_be_changed(stage):
    """The adapter does not look at the answer to a poll: whether it is there is not known."""
    platform = stage.platform
    platform.listening(stage)
    stage.sends_with_tool(message="a-text", poll_question="When?", poll_options=["Now", "Later"])
    platform.say("first-words")
    platform.answer_with("When?")
    assert platform.called("sendPoll")[0]["options"] == [{"text": "Now"}, {"text": "Later"}], platform.calls
    assert "a-text" in [text for text, _ in platform.log], platform.log
    assert "does not report" in stage.send_with("unknown")["reason"], stage.sends()
    for option in (0, 1):
        vote = {"poll_id": POLL, "user": {"id": ANN, "first_name": "Ann"}, "option_ids": [option]}
        platform.bring(poll_answer=vote)
        platform.answer_with(f"[User answered poll {POLL}: {option}]")
    stage.kill_adapter()
    platform.listening(stage)
    platform.bring(poll_answer=vote)
    platform.say("second-words")
    platform.answer_with("second-words")
    assert len([text for text, _ in platform.log if f"{POLL}: 1]" in text]) == 1, platform.log


def case_a_list_with_buttons_is_replaced_by_what_is_chosen(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.command("agents")
    shown = until("there are buttons", lambda: [body for body in platform.called("sendMessage") if "reply_markup" in body])[0]
    button = shown["reply_markup"]["inline_keyboard"][0][0]
    at = [text for text, _ in platform.log].index(shown["text"])
    on = {"message_id": at, "text": shown["text"], "chat": {"id": ANN, "type": "private"}}
    platform.bring(callback_query={"id": "press", "from": {"id": ANN, "first_name": "Ann"}, "data": button["callback_data"], "message": on})
    edited = until("the list is replaced", lambda: platform.called("editMessageText"))[0]
    assert edited["message_id"] == at and "scout" in edited["text"], edited


class Files(Platform):
    """Its files are on this machine."""

    config = '[web.fetch]\nssrf_allowed_hosts = ["127.0.0.0/8"]\n'
    args = ["-c", ELSEWHERE]

    def __init__(self):
        super().__init__()
        self.files = Http(self.file)

    def env(self):
        return {**super().env(), "TELEGRAM_FILES": self.files.url}

    def file(self, request):
        path = request.path.removeprefix(f"/file/bot{TOKEN}/in/")
        return {"voice.ogg": (200, VOICE), "picture.png": (200, PIXEL)}.get(path, (404, {}))


def case_a_voice_message_and_a_photo_reach_the_agent(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say(None, voice={"file_id": "voice.ogg", "duration": 3})
    text, _ = platform.answer_with(" bytes]")
    assert "[User sent a voice message: upload " in text, text
    upload = text.split("upload ")[1].split(",")[0]
    assert harness.fetch("GET", f"{stage.daemon.url}/api/uploads/{upload}") == (200, VOICE), text
    platform.say(None, photo=[{"file_id": "picture.png"}], caption="a-caption")
    platform.answer_with("a-caption")
    assert base64.b64encode(PIXEL).decode() in str(stage.model.messages), stage.model.messages
    assert TOKEN not in str(stage.model.messages), "the URL of a file has the token of the bot"


case_a_voice_message_and_a_photo_reach_the_agent.platform = Files


def case_a_recording_of_an_agent_is_sent_as_a_voice_message(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.write("note.ogg", VOICE)
    stage.sends_with_tool(file_path="note.ogg")
    platform.say("first-words")
    platform.answer_with("sendVoice")
    assert VOICE in platform.called("sendVoice")[0], platform.calls
    stage.send_with("sent")
