"""Mail: a real IMAP server (pymap) behind TLS, and a real SMTP server (aiosmtpd) with STARTTLS."""

import asyncio
import contextlib
import email
import email.message
import email.policy
import imaplib
import itertools
import pathlib
import socket
import subprocess
import sys
import threading

import aiosmtpd.controller
import aiosmtpd.smtp

import certificates
import harness
from harness import lasting_port, listens, until

BOT, ANN, PASSWORD = "bot@example.org", "ann@example.org", "mail-password"


class Platform(harness.Platform):
    name = "email"
    more = f'available_agents = ["critic"]\nreadable_paths = ["{certificates.authority_file().parent}"]'

    def __init__(self):
        super().__init__()
        self.ids = itertools.count(1)
        self.mailboxes = lasting_port()
        program = pathlib.Path(sys.executable).parent / "pymap"
        self.server = subprocess.Popen(
            [program, "--host", "127.0.0.1", "--port", str(self.mailboxes), "--no-tls", "--no-service", "admin", "--no-service",
             "managesieve", "dict", "--demo-user", BOT, "--demo-password", PASSWORD], stderr=subprocess.DEVNULL)
        listens(self.mailboxes)
        self.imap = encrypted(self.mailboxes)
        self.smtp = aiosmtpd.controller.Controller(
            self, hostname="127.0.0.1", port=lasting_port(), tls_context=certificates.server_context("localhost"),
            require_starttls=True, auth_required=True, authenticator=authenticate)
        self.smtp.start()

    def env(self):
        return {"EMAIL_IMAP_HOST": "localhost", "EMAIL_IMAP_PORT": self.imap.getsockname()[1], "EMAIL_SMTP_HOST": "localhost",
                "EMAIL_SMTP_PORT": self.smtp.port, "EMAIL_USERNAME": BOT, "EMAIL_PASSWORD": PASSWORD,
                "EMAIL_POLL_INTERVAL_SECS": 5, "EMAIL_TLS_ROOT_CA_PATH": certificates.authority_file()}

    async def handle_DATA(self, server, session, envelope):
        assert envelope.mail_from == BOT and envelope.rcpt_tos == [ANN], envelope
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.mail = mail
        text = mail.get_content()
        status = await asyncio.get_running_loop().run_in_executor(None, self.take, text)
        return "250 taken" if status == 200 else "550 5.7.1 not allowed"

    def mailbox(self):
        client = imaplib.IMAP4("127.0.0.1", self.mailboxes)
        client.login(BOT, PASSWORD)
        client.select("INBOX")
        return contextlib.closing(client) if not hasattr(client, "__enter__") else client

    def listening(self, stage):
        """It needs none: what lies in the mailbox is read later."""

    def say(self, text, subject="Question"):
        number = next(self.ids)
        mail = (f"From: Ann <{ANN}>\r\nTo: {BOT}\r\nSubject: {subject}\r\nMessage-ID: <m{number}@example.org>\r\n\r\n{text}\r\n")
        self.bring(mail.encode())

    def bring(self, mail):
        with self.mailbox() as client:
            status, said = client.append("INBOX", None, None, mail)
        assert status == "OK", said

    def unseen(self):
        with self.mailbox() as client:
            return client.search(None, "UNSEEN")[1][0].split()

    def close(self):
        super().close()
        self.smtp.stop()
        self.imap.close()
        self.server.kill()
        self.server.wait()


def authenticate(server, session, envelope, mechanism, data):
    known = isinstance(data, aiosmtpd.smtp.LoginPassword) and (data.login, data.password) == (BOT.encode(), PASSWORD.encode())
    return aiosmtpd.smtp.AuthResult(success=known)


def encrypted(port):
    """A listener that encrypts what the server at the port says."""
    listener, context = socket.create_server(("127.0.0.1", 0)), certificates.server_context("localhost")

    def copy(source, target):
        with contextlib.suppress(OSError):
            while content := source.recv(65_536):
                target.sendall(content)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def serve(connection):
        with contextlib.suppress(OSError):
            outside, inside = context.wrap_socket(connection, server_side=True), socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=copy, args=(outside, inside), daemon=True).start()
            copy(inside, outside)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def case_an_answer_has_the_subject_and_names_its_mail(stage):
    platform = stage.platform
    platform.say("first-words")
    platform.answer_with("first-words")
    stage.send_with("sent")
    headers = platform.mail
    assert (headers["subject"], headers["in-reply-to"]) == ("Re: Question", "<m1@example.org>"), headers.items()
    assert (headers["from"], headers["to"]) == (BOT, ANN), headers.items()
    until("the mail is marked as seen", lambda: not platform.unseen())


def case_a_subject_names_the_agent_that_answers(stage):
    """Among those that the channel has, and no other."""
    platform = stage.platform
    for name in ("critic", "keeper"):
        manifest = f'name = "{name}"\nmodel = {{ system_prompt = "I am {name}." }}\n'
        status, said = stage.daemon.call("POST", "/api/agents", {"manifest_toml": manifest})
        assert status in (200, 201), said
    for text, named, answers in [("first-words", "critic", "critic"), ("second-words", "keeper", "scout")]:
        platform.say(text, subject=f"[{named}] Question")
        platform.answer_with(text)
        assert answers in stage.model.messages[0]["content"], (text, stage.model.messages[0])


def case_of_a_mail_with_a_file_the_text_is_read(stage):
    """The adapter of the SDK brings texts alone."""
    platform = stage.platform
    mail = email.message.EmailMessage()
    mail["From"], mail["To"], mail["Subject"], mail["Message-ID"] = f"Ann <{ANN}>", BOT, "Question", "<file@example.org>"
    mail.set_content("first-words")
    mail.add_attachment(b"content", maintype="application", subtype="pdf", filename="report.pdf")
    platform.bring(mail.as_bytes(policy=email.policy.SMTP))
    assert "report.pdf" not in platform.answer_with("first-words")[0], platform.log
    stage.send_with("sent")


def case_a_mail_that_is_brought_again_is_not_answered_twice(stage):
    """The adapter may be killed before it marks a mail as seen: the next one brings it again."""
    platform = stage.platform
    platform.say("first-words")
    platform.answer_with("first-words")
    stage.send_with("sent")
    until("the mail is marked as seen", lambda: not platform.unseen())
    with platform.mailbox() as client:
        client.store("1", "-FLAGS", "(\\Seen)")
    stage.kill_adapter()
    until("the mail is marked as seen again", lambda: not platform.unseen())
    platform.say("second-words")
    platform.answer_with("second-words")
    assert platform.count("first-words") == 1, platform.log
    assert stage.row()["messages_received"] == 3, stage.row()


class Distrusting(Platform):
    """The adapter does not know the authority of the servers."""

    def env(self):
        return {key: value for key, value in super().env().items() if key != "EMAIL_TLS_ROOT_CA_PATH"}


def case_servers_that_are_not_trusted_get_no_password(stage):
    logs = until("it says so", lambda: [line for line in stage.daemon.get(f"/api/channels/{stage.name}/logs")["lines"]
                                       if "CERTIFICATE_VERIFY_FAILED" in line["message"]])
    assert all(PASSWORD not in line["message"] for line in logs), logs
    assert stage.row()["state"] == "started", stage.row()


case_servers_that_are_not_trusted_get_no_password.platform = Distrusting
