"""Mattermost: posts come over a WebSocket, and go out over HTTP."""

import base64
import hashlib
import itertools
import json
import queue
import struct

import harness
from harness import PATIENCE_S, Http, until

BOT, ROOM = "bot-id", "room-id"


class Platform(harness.Platform):
    name = "mattermost"

    def __init__(self):
        super().__init__()
        self.http = Http(self.serve)
        self.sockets, self.ids = queue.Queue(), itertools.count(1)
        self.socket = None
        #: The channels in which it showed that it types.
        self.typing = []

    def env(self):
        return {"MATTERMOST_SERVER_URL": self.http.url, "MATTERMOST_TOKEN": "mattermost-token"}

    def serve(self, request):
        if request.path == "/api/v4/websocket":
            return self.upgrade(request)
        assert request.headers["authorization"] == "Bearer mattermost-token"
        if request.path == "/api/v4/users/me":
            return 200, {"id": BOT, "username": "bot"}
        if request.path == "/api/v4/users/me/typing":
            self.typing.append(request.json()["channel_id"])
            return 200, {"status": "OK"}
        assert (request.method, request.path) == ("POST", "/api/v4/posts"), request.path
        post = request.json()
        assert post["channel_id"] == ROOM, post
        status = self.take(post["message"], post.get("root_id"))
        return (201, {"id": "p"}) if status == 200 else (status, {"message": "no permission"})

    def upgrade(self, request):
        key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        out = request.handler.wfile
        out.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        out.flush()
        asked = json.loads(frame(request.handler.rfile))
        assert asked["action"] == "authentication_challenge" and asked["data"]["token"] == "mattermost-token", asked
        write(out, {"status": "OK", "seq_reply": 1})
        self.sockets.put(out)
        while frame(request.handler.rfile) is not None:
            pass
        return None

    def listening(self, stage):
        self.socket = self.sockets.get(timeout=PATIENCE_S)

    def say(self, text, kind="D", **more):
        post = {"id": f"post-{next(self.ids)}", "user_id": "ann-id", "channel_id": ROOM, "message": text, **more}
        data = {"post": json.dumps(post), "channel_type": kind, "sender_name": "@ann"}
        write(self.socket, {"event": "posted", "data": data})
        return post.get("root_id", post["id"])


def write(out, value):
    content = json.dumps(value).encode()
    assert len(content) < 65536
    head = struct.pack("!BB", 0x81, len(content)) if len(content) < 126 else struct.pack("!BBH", 0x81, 126, len(content))
    out.write(head + content)
    out.flush()


def frame(source):
    """The payload of a masked frame; nothing when the connection ends."""
    try:
        head = source.read(2)
        if len(head) < 2 or head[0] & 15 == 8:
            return None
        size = head[1] & 127
        if size == 126:
            size = struct.unpack("!H", source.read(2))[0]
        mask = source.read(4)
        return bytes(byte ^ mask[at % 4] for at, byte in enumerate(source.read(size)))
    except OSError:
        return None


def case_its_own_posts_are_not_answered(stage):
    platform = stage.platform
    platform.listening(stage)
    own = {"id": "own", "user_id": BOT, "channel_id": ROOM, "message": "own-words"}
    write(platform.socket, {"event": "posted", "data": {"post": json.dumps(own), "channel_type": "D"}})
    platform.say("first-words")
    platform.answer_with("first-words")
    assert not platform.count("own-words"), platform.log


def case_a_person_sees_that_an_answer_is_written(stage):
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    platform.say("first-words")
    until("it types", lambda: platform.typing)
    assert set(platform.typing) == {ROOM} and not platform.log, (platform.typing, platform.log)
    stage.model.gate.set()
    platform.answer_with("first-words")


def case_an_answer_stays_in_its_thread(stage):
    """In a channel: under the post that began the thread, and not under the one that is answered."""
    platform = stage.platform
    platform.listening(stage)
    for text, root in [("first-words", "root-1"), ("second-words", "root-2")]:
        assert platform.say(text, kind="O", root_id=root) == root
        assert platform.answer_with(text) == (f"echo: @ann: {text}", root), platform.log
