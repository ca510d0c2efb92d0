"""Matrix: long polls for what is new, and events that are put, edited and taken back."""

import base64
import itertools
import threading
import urllib.parse

import harness
from harness import PIXEL, Http, until

ROOM, BOT = "!room:example.org", "@bot:example.org"
PLACEHOLDER = "…"
VOICE = b"OggS" + bytes(24) + b"OpusHead-voice"
DOWNLOAD = "/_matrix/client/v1/media/download/"
PICTURE_TEXT = base64.b64encode(PIXEL).decode()


class Platform(harness.Platform):
    name = "matrix"
    shows_pictures = takes_files = True
    manifest = '[capabilities]\ntools = ["channel_send"]\nnetwork = ["127.0.0.1", "93.184.216.34"]\n'
    #: It and the daemon fetch files from this machine.
    config = f'[web.fetch]\nssrf_allowed_hosts = ["127.0.0.0/8"]\n[channels]\nallow_send_to = ["matrix:{ROOM}"]\n'
    more = "threading = true"

    def __init__(self):
        super().__init__()
        self.http = Http(self.serve)
        self.changed, self.ids = threading.Condition(), itertools.count(1)
        #: What was said, in order; what was put, by id, with its edits; what was taken back; polls so far.
        self.events, self.put, self.edits, self.redacted, self.reactions = [], {}, [], [], []
        self.downloads, self.uploads, self.upload_status = [], [], 200
        self.polls = 0

    def env(self):
        return {"MATRIX_HOMESERVER_URL": self.http.url, "MATRIX_USER_ID": BOT, "MATRIX_ACCESS_TOKEN": "matrix-token"}

    def serve(self, request):
        assert request.headers["authorization"] == "Bearer matrix-token"
        url = urllib.parse.urlsplit(request.path)
        path = urllib.parse.unquote(url.path).removeprefix("/_matrix/client/v3/")
        if path == "account/whoami":
            return 200, {"user_id": BOT}
        if path.endswith("/account_data/m.direct"):
            return 200, {"@ann:example.org": [ROOM]}
        if url.path.startswith(DOWNLOAD):
            self.downloads.append(url.path.removeprefix(DOWNLOAD))
            return 200, VOICE if url.path.endswith("/voice") else PIXEL
        if url.path == "/_matrix/media/v3/upload":
            if self.upload_status != 200:
                return self.upload_status, {"errcode": "M_TOO_LARGE", "error": "too large"}
            self.uploads.append(request.body)
            return 200, {"content_uri": "mxc://example.org/uploaded"}
        if path == "sync":
            return 200, self.sync(urllib.parse.parse_qs(url.query))
        room, _, what = path.removeprefix("rooms/").partition("/")
        assert (request.method, room) == ("PUT", ROOM), request.path
        kind, *rest = what.split("/")
        body = request.json()
        if kind == "typing":
            return 200, {}
        if kind == "redact":
            self.redacted.append(rest[0])
            return 200, {"event_id": f"$redaction-{next(self.ids)}"}
        event = f"$event-{next(self.ids)}"
        if rest[0] == "m.reaction":
            self.reactions.append((event, body["m.relates_to"]))
            return 200, {"event_id": event}
        relation = body.get("m.relates_to", {})
        if relation.get("rel_type") == "m.replace":
            self.edits.append((relation["event_id"], body["m.new_content"]["body"]))
            status = self.status
        elif body["body"] == PLACEHOLDER:
            status = self.status
        else:
            status = self.take(body["body"])
        if status != 200:
            return status, {"errcode": "M_FORBIDDEN", "error": "not allowed"}
        self.put[event] = body
        return 200, {"event_id": event}

    def sync(self, query):
        since = query.get("since", [None])[0]
        with self.changed:
            self.polls += 1
            self.changed.notify_all()
            # Without a place to go on from, only what comes later counts.
            at = len(self.events) if since is None else int(since)
            self.changed.wait_for(lambda: len(self.events) > at or since is None, timeout=0.5)
            new, to = self.events[at:], len(self.events)
        rooms = {"join": {ROOM: {"timeline": {"events": new}}}} if new else {}
        return {"next_batch": str(to), "rooms": rooms}

    def listening(self, stage):
        with self.changed:
            before = self.polls
            # The second poll goes on from a place.
            assert self.changed.wait_for(lambda: self.polls > before + 1, timeout=harness.PATIENCE_S), "it polls"

    def say(self, text, **more):
        with self.changed:
            self.events.append({"type": "m.room.message", "sender": "@ann:example.org", "event_id": f"$said-{len(self.events)}",
                                "content": {"msgtype": "m.text", "body": text, **more}})
            self.changed.notify_all()


def case_a_text_is_shown_while_it_is_written(stage):
    """A placeholder, edits of it, and in the end the whole text as a message of its own."""
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    platform.say("first-words " * 10)
    shown = until("a part is shown", lambda: list(platform.edits))
    assert shown[0][1].startswith("echo: ") and len(shown[0][1]) < 100, shown
    stage.model.gate.set()
    platform.answer_with("first-words")
    placeholder = shown[0][0]
    until("the placeholder is taken back", lambda: placeholder in platform.redacted)
    stage.send_with("sent")


def case_what_is_said_while_it_is_down_is_answered(stage):
    """The adapter keeps its place in the home that the daemon gives it."""
    platform = stage.platform
    platform.listening(stage)
    stage.daemon.kill()
    until("the adapter ends with the daemon", lambda: not stage.adapters())
    platform.say("first-words")
    stage.daemon.start()
    platform.answer_with("first-words")


def case_signs_go_when_the_answer_is_there(stage):
    """A sign for each step at the message, each taken back when the next comes."""
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words")
    platform.answer_with("first-words")
    stage.send_with("sent")
    until("the last sign says that it is done", lambda: platform.reactions and platform.reactions[-1][1]["key"] == "✅")
    assert all(sign["event_id"] == "$said-0" for _, sign in platform.reactions), platform.reactions
    assert [event for event, _ in platform.reactions[:-1]] == [event for event in platform.redacted if event in dict(platform.reactions)]


def case_a_refused_text_after_its_placeholder_is_called_refused(stage):
    """The room may be closed while the answer is written: what was shown goes no further."""
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    platform.say("first-words " * 10)
    until("a part is shown", lambda: platform.edits)
    platform.status = 403
    stage.model.gate.set()
    send = stage.send_with("sent", "refused", "unknown")
    assert send["status"] in ("refused", "unknown"), send


def case_an_answer_stays_in_its_thread(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words", **{"m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}})
    platform.answer_with("first-words")
    stage.send_with("sent")
    answer = next(body for body in platform.put.values() if "first-words" in body["body"])
    assert answer["m.relates_to"]["event_id"] == "$root", platform.put


def case_a_picture_of_an_agent_goes_up_and_is_posted(stage):
    """What an agent sends as a picture is stored at the platform first."""
    platform = stage.platform
    platform.listening(stage)
    picture = {"channel": "matrix", "recipient": ROOM, "message": "a-caption", "image_url": f"{pictures().url}/a.png"}
    stage.model.calls = "channel_send", picture
    stage.tell("first-words")
    platform.answer_with("a-caption")
    stage.send_with("sent")
    assert platform.uploads == [PIXEL], platform.uploads
    posted = next(body for body in platform.put.values() if body["msgtype"] == "m.image")
    assert posted["url"] == "mxc://example.org/uploaded", posted


def case_a_picture_of_the_workspace_is_posted_as_a_picture(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.write("point.png", PIXEL)
    stage.sends_with_tool(file_path="point.png")
    platform.say("first-words")
    posted = until("it is posted", lambda: [body for body in platform.put.values() if body.get("msgtype") == "m.image"])
    assert posted[0]["url"] == "mxc://example.org/uploaded" and platform.uploads == [PIXEL], (posted, platform.uploads)
    platform.answer_with("first-words")


def case_a_file_that_the_platform_does_not_take_is_called_refused(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.upload_status = 413
    stage.write("point.png", PIXEL)
    stage.sends_with_tool(file_path="point.png")
    platform.say("first-words")
    platform.answer_with("first-words")
    assert "413" in stage.send_with("refused")["reason"], stage.sends()
    assert all(body.get("msgtype") != "m.image" for body in platform.put.values()), platform.put


def case_a_place_of_an_agent_is_posted(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.sends_with_tool(latitude=48.2, longitude=16.4)
    platform.say("first-words")
    platform.answer_with("48.2")
    posted = [body for body in platform.put.values() if body["msgtype"] == "m.location"]
    assert [body["geo_uri"] for body in posted] == ["geo:48.2,16.4"], platform.put


class Closed(Platform):
    """Nothing of this machine may be fetched."""

    config = f'[channels]\nallow_send_to = ["matrix:{ROOM}"]\n'


def case_an_adapter_fetches_nothing_for_an_agent_that_the_daemon_would_not(stage):
    platform = stage.platform
    platform.listening(stage)
    picture = {"channel": "matrix", "recipient": ROOM, "message": "a-caption", "image_url": f"{pictures().url}/a.png"}
    stage.model.calls = "channel_send", picture
    stage.tell("first-words")
    said = [message["content"] for message in stage.model.messages if message["role"] == "tool"]
    assert len(said) == 1 and "127.0.0.1" in said[0] and "queued" not in said[0], said
    assert not platform.uploads and not stage.sends(), (platform.uploads, stage.sends())


case_an_adapter_fetches_nothing_for_an_agent_that_the_daemon_would_not.platform = Closed


def pictures():
    return Http(lambda request: (200, PIXEL))


def case_a_picture_of_a_person_reaches_the_agent(stage):
    """The daemon fetches it with the header that the adapter wants for this server."""
    platform = stage.platform
    platform.listening(stage)
    platform.say("a-caption", msgtype="m.image", url="mxc://example.org/pic", info={"mimetype": "image/png"})
    platform.answer_with("a-caption")
    assert platform.downloads == ["example.org/pic"], platform.downloads
    assert any(PICTURE_TEXT in str(message) for message in stage.model.messages), stage.model.messages


def case_a_voice_message_of_a_person_reaches_the_agent(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.say("voice.ogg", msgtype="m.audio", url="mxc://example.org/voice",
                 info={"mimetype": "audio/ogg", "duration": 2000}, **{"org.matrix.msc3245.voice": {}})
    text, _ = platform.answer_with(f" {len(VOICE)} bytes]")
    assert "[User sent a voice message: upload " in text and platform.downloads == ["example.org/voice"], (text, platform.downloads)
