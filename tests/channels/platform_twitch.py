"""Twitch: IRC over a socket. It confirms nothing, so nothing can be refused."""

import itertools
import queue
import socket
import threading

import harness
from harness import PATIENCE_S


class Platform(harness.Platform):
    name = "twitch"
    refuses = False

    def __init__(self):
        super().__init__()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.joined, self.pongs = queue.Queue(), queue.Queue()
        self.ids, self.connection = itertools.count(1), None
        threading.Thread(target=self.accept, daemon=True).start()

    def env(self):
        return {"TWITCH_OAUTH_TOKEN": "twitch-token", "TWITCH_NICK": "bot", "TWITCH_CHANNELS": "den", "TWITCH_HOST": "127.0.0.1",
                "TWITCH_PORT": self.listener.getsockname()[1], "TWITCH_PLAINTEXT": 1}

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            for line in connection.makefile("r", encoding="utf-8", newline="\r\n"):
                self.hear(connection, line.rstrip("\r\n"))
        except OSError:
            pass  # it was killed

    def hear(self, connection, line):
        tags, rest = line.split(" ", 1) if line.startswith("@") else ("", line)
        command, _, words = rest.partition(" ")
        if command == "PASS":
            assert words == "oauth:twitch-token", words
        elif command == "JOIN":
            assert words == "#den", words
            self.joined.put(connection)
        elif command == "PONG":
            self.pongs.put(words)
        elif command == "PRIVMSG":
            room, _, text = words.partition(" :")
            assert room == "#den", line
            self.take(text, tags.removeprefix("@reply-parent-msg-id="))

    def listening(self, stage):
        self.connection = self.joined.get(timeout=PATIENCE_S)

    def say(self, text):
        token = f"0-a-{next(self.ids)}"
        tags = f"@id={token};display-name=Ann;user-id=42"
        self.connection.sendall(f"{tags} :ann!ann@ann.tmi.twitch.tv PRIVMSG #den :{text}\r\n".encode())
        return token

    def close(self):
        super().close()
        self.listener.close()


def case_a_ping_is_answered_and_long_answers_are_split(stage):
    platform = stage.platform
    platform.listening(stage)
    platform.connection.sendall(b"PING :tmi.twitch.tv\r\n")
    assert platform.pongs.get(timeout=PATIENCE_S) == ":tmi.twitch.tv"
    platform.say("word " * 80 + "last-word")
    parts = []
    while not any("last-word" in part for part in parts):
        parts.append(platform.sent.get(timeout=PATIENCE_S)[0])
    assert len(parts) > 1 or len(parts[0]) <= 500, parts
    assert all(len(part) <= 500 for part in parts), parts
