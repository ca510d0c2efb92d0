"""What holds on each platform."""

from harness import PICTURE, until

#: How a send may end that was under way: a platform that answers each send had not answered it.
STOPPED = {True: ["unknown"], False: ["sent", "unknown"]}


def case_a_message_is_answered(stage):
    """A message comes in, its answer goes out, with what the platform needs to put it in its place."""
    platform = stage.platform
    platform.listening(stage)
    wanted = platform.say("first-words")
    text, more = platform.answer_with("first-words")
    assert text.startswith("echo: "), text
    assert wanted is None or more == wanted, (more, wanted)
    assert stage.send_with("sent", "refused", "unknown")["status"] == "sent", stage.sends()
    assert stage.row()["state"] == "active", stage.row()
    platform.say("second-words")
    platform.answer_with("second-words")
    assert platform.count("first-words") == 1, platform.log


def case_a_refused_send_is_called_refused(stage):
    """The platform answers 403: the send is not called sent."""
    platform = stage.platform
    platform.listening(stage)
    platform.status = 403
    platform.say("first-words")
    send = stage.send_with("sent", "refused", "unknown")
    assert send["status"] == "refused" and send["reason"], send
    # The next one is not mistaken for it.
    platform.status = 200
    if platform.signs_out:
        platform.listening(stage)
    platform.say("second-words")
    platform.answer_with("second-words")
    stage.send_with("sent")


def case_a_picture_goes_out_as_its_caption_and_link(stage):
    """The adapter shows texts only: the caption is not lost, and people can open the link."""
    platform = stage.platform
    platform.listening(stage)
    stage.sends_with_tool(message="a-caption", image_url=PICTURE)
    platform.say("first-words")
    platform.answer_with("first-words")
    until("the caption and the link are there", lambda: platform.count("a-caption") and platform.count(PICTURE))
    until("both were sent", lambda: [send["status"] for send in stage.sends()] == ["sent", "sent"])
    assert not platform.count("nsupported"), platform.log


def case_a_file_that_cannot_be_shown_is_called_refused(stage):
    """A file of the agent's workspace has no link."""
    platform = stage.platform
    platform.listening(stage)
    stage.write("report.txt", b"content")
    stage.sends_with_tool(file_path="report.txt")
    platform.say("first-words")
    platform.answer_with("first-words")
    send = stage.send_with("refused")
    assert "report.txt" in send["reason"] and stage.name in send["reason"], send
    stage.send_with("sent")
    assert not platform.count("report.txt") and not platform.count("nsupported"), platform.log


def case_an_adapter_that_is_killed_runs_again(stage):
    """Nothing is lost but what it had not said yet, and nothing is said twice."""
    platform = stage.platform
    platform.listening(stage)
    platform.say("first-words")
    platform.answer_with("first-words")
    stage.send_with("sent")
    stage.kill_adapter()
    platform.listening(stage)
    platform.say("second-words")
    platform.answer_with("second-words")
    assert platform.count("first-words") == 1, platform.log


def case_an_adapter_is_killed_while_it_sends(stage):
    """The send may have arrived: it ends unknown, and is not made again."""
    platform = stage.platform
    platform.listening(stage)
    platform.gate.clear()
    platform.say("first-words")
    platform.answer_with("first-words")
    stage.kill_adapter()
    platform.gate.set()
    settled(stage, *STOPPED[platform.refuses])


def case_the_daemon_is_killed_in_an_answer(stage):
    """The model was in the middle of the answer: it is given once, or its message is known as not answered."""
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    wanted = platform.say("first-words")
    stage.model.asked("first-words")
    stage.daemon.kill()
    ended(stage)
    if platform.signs_out:
        stage.daemon.start()
        platform.listening(stage)
        stage.model.gate.set()
    else:
        stage.model.gate.set()
        stage.daemon.start()
    settled(stage, "sent", "unknown", is_signed_in=platform.signs_out)
    assert all(more == wanted for text, more in platform.log if "first-words" in text), (platform.log, wanted)


def case_what_an_answer_needs_outlives_the_adapter(stage):
    """The answer comes when another adapter runs: it is sent with what the first one brought."""
    platform = stage.platform
    platform.listening(stage)
    stage.model.gate.clear()
    wanted = platform.say("first-words")
    stage.model.asked("first-words")
    stage.kill_adapter()
    platform.listening(stage)
    stage.model.gate.set()
    text, more = platform.answer_with("first-words")
    assert more == wanted, (text, more, wanted)
    stage.send_with("sent")
    assert platform.count("first-words") == 1, platform.log


def case_the_daemon_is_killed_while_it_sends(stage):
    """The platform has the answer already: it must not get it again."""
    platform = stage.platform
    platform.listening(stage)
    platform.gate.clear()
    platform.say("first-words")
    platform.answer_with("first-words")
    stage.daemon.kill()
    ended(stage)
    platform.gate.set()
    stage.daemon.start()
    settled(stage, *STOPPED[platform.refuses])


def ended(stage):
    """The adapter ends with its daemon: two would both answer, and the second finds its port taken."""
    until("the adapter ends with the daemon", lambda: not stage.adapters())


def settled(stage, *statuses, is_signed_in=False):
    """The first answer was given once or ended unknown, and what comes after it is answered."""
    platform = stage.platform
    first = stage.send_with("sent", "refused", "unknown")
    assert first["status"] in statuses, first
    if not is_signed_in:
        platform.listening(stage)
    platform.say("second-words")
    platform.answer_with("second-words")
    count = platform.count("first-words")
    assert count == 1 or count == 0 and first["status"] == "unknown", (platform.log, stage.sends())
