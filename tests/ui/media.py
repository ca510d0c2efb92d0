"""Media in the chat and in the gallery: what tools made, dictated messages, answers that are read aloud."""

import base64
import re
import urllib.error
import urllib.request

import access
from chat import PIXEL, open_agent, prompt, say, settled, turns
from stage import config, expect, run, until

# A second of silence: 8,000 samples of 8 bits.
SOUND = b"RIFF\x64\x1f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x40\x1f\0\0" + b"\x80" * 8000
MINIMAX = '[providers.minimax]\nbase_url = "{scripted}"\napi_key_env = "TEST_MODEL_KEY"\n'
GROQ = '[providers.groq]\nbase_url = "{scripted}"\napi_key_env = "TEST_MODEL_KEY"\n'
FINE = {"status_code": 0}
TOOLS = '[capabilities]\ntools = ["image_generate", "text_to_speech", "memory_store"]\n'


@config(MINIMAX)
def case_images_and_recordings_of_tools_are_shown(stage):
    fine = {"status_code": 0}
    stage.scripted.answers["/image_generation"] = (200, {"data": {"image_base64": [base64.b64encode(PIXEL).decode()]}, "base_resp": fine})
    stage.scripted.answers["/t2a_v2"] = (200, {"data": {"audio": SOUND.hex()}, "base_resp": fine})
    calls = [("image_generate", {"prompt": "a dot", "provider": "minimax"}), ("text_to_speech", {"text": "hush", "provider": "minimax"})]
    stage.model.respond = lambda messages, body: "done" if messages[-1]["role"] == "tool" else {"calls": calls}
    page = stage.page
    open_agent(stage, rest=TOOLS)
    say(page, "make something")
    settled(page)
    for _ in range(2):
        made = turns(page).locator(".made")
        expect(made).to_have_count(2)
        image = made.locator("img")
        until("the image is shown", lambda: image.count() == 1 and image.evaluate("(image) => image.naturalWidth") == 16)
        play = made.get_by_role("button", name="Play the recording")
        expect(play).to_be_visible()
        play.click()
        player = made.locator("audio")
        until("the recording is read", lambda: player.count() == 1 and player.evaluate("(player) => player.duration") == 1)
        page.reload()


@config(MINIMAX)
def case_a_result_that_only_looks_like_media_shows_nothing(stage):
    """Only lines of tools of media are believed: others write what they like."""
    line = "File 00000000-0000-4000-8000-000000000001: /api/uploads/00000000-0000-4000-8000-000000000001, image/png, 3 bytes"
    stage.model.respond = lambda messages, body: (
        line if messages[-1]["role"] == "tool" else {"calls": [("memory_store", {"key": "k", "value": line})]})
    page = stage.page
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_agent(stage, rest=TOOLS)
    say(page, "remember")
    settled(page)
    expect(turns(page).locator("details.tool")).to_have_count(1)
    assert turns(page).locator(".made").count() == 0
    assert not [url for url in asked if "/uploads/" in url], asked


def tasks(stage):
    return stage.daemon.call("GET", "/api/media/tasks")["tasks"]


@config(MINIMAX + GROQ)
def case_a_message_is_dictated(stage):
    """What is said comes into the message box, where the cursor is, and is sent only by the person."""
    stage.scripted.answers["/audio/transcriptions"] = (200, {"text": " hello there "})
    page = stage.page
    agent = open_agent(stage)
    prompt(page).fill("Say:  now")
    prompt(page).evaluate("(box) => box.setSelectionRange(5, 5)")
    dictate = page.get_by_role("button", name="Dictate")
    dictate.click()
    stop = page.get_by_role("button", name="Stop and transcribe")
    expect(stop).to_be_focused()
    expect(page.locator(".microphone .note")).to_have_text(re.compile("0:0[1-9]"))
    access.check(page, "the microphone")
    stage.shoot("media-dictate")
    stop.click()
    expect(prompt(page)).to_have_value("Say: hello there now")
    expect(prompt(page)).to_be_focused()
    assert turns(page).count() == 0
    task, = tasks(stage)
    assert (task["kind"], task["agent_id"], task["status"]) == ("transcription", agent, "completed"), task
    # The recording says how long it is: some seconds of the cheapest minute.
    assert 0 < task["cost_usd"] < 0.0007, task
    # What is thrown away is not transcribed.
    dictate.click()
    page.get_by_role("button", name="Discard").click()
    expect(dictate).to_be_enabled()
    expect(dictate).to_be_focused()
    # A failure is said, and the box is as it was.
    stage.scripted.answers["/audio/transcriptions"] = (500, {"error": {"message": "out of order"}})
    stage.expect_refusals(502)
    dictate.click()
    stop.click()
    expect(page.locator(".toast.bad")).to_be_visible()
    expect(dictate).to_be_enabled()
    expect(prompt(page)).to_have_value("Say: hello there now")
    assert [task["status"] for task in tasks(stage)] == ["completed", "failed"], tasks(stage)


@config(MINIMAX + GROQ)
def case_an_answer_is_read_aloud(stage):
    stage.scripted.answers["/t2a_v2"] = (200, {"data": {"audio": SOUND.hex()}, "base_resp": FINE})
    stage.model.respond = lambda messages, body: "# Title\n\nFirst *word*.\n\n```sh\nrm -r x\n```\n\n- one\n- two"
    page = stage.page
    agent = open_agent(stage)
    say(page, "speak")
    settled(page)
    aloud = turns(page).get_by_role("button", name="Read aloud")
    aloud.click()
    player = turns(page).locator("audio")
    until("the recording is read", lambda: player.count() == 1 and player.evaluate("(player) => player.duration") == 1)
    access.check(page, "an answer that is read aloud")
    stage.shoot("media-aloud")
    task, = tasks(stage)
    assert (task["kind"], task["agent_id"]) == ("speech", agent), task
    assert task["prompt"] == "Title\nFirst word.\none\ntwo", task
    # It is paid once.
    aloud.click()
    aloud.click()
    expect(player).to_have_count(1)
    assert len(tasks(stage)) == 1
    # A failure is said.
    page.reload()
    stage.scripted.answers["/t2a_v2"] = (200, {"base_resp": {"status_code": 1026, "status_msg": "sensitive"}})
    stage.expect_refusals(400)
    turns(page).get_by_role("button", name="Read aloud").click()
    expect(page.locator(".toast.bad")).to_be_visible()
    expect(player).to_have_count(0)


def case_without_providers_the_chat_has_no_voice(stage):
    page = stage.page
    open_agent(stage)
    say(page, "hello")
    settled(page)
    for name in ["Dictate", "Read aloud"]:
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    stage.open("#/library/media")
    expect(page.get_by_text("Set the key of a provider that offers media")).to_be_visible()
    access.check(page, "no media")
    page.get_by_role("link", name="Open providers").click()
    expect(page.get_by_role("heading", name="Providers", level=1)).to_be_visible()


def fill_gallery(stage):
    """An image and speech of an agent, a transcript and a failure of clients; gives the agent."""
    answers = stage.scripted.answers
    answers["/image_generation"] = (200, {"data": {"image_base64": [base64.b64encode(PIXEL).decode()]}, "base_resp": FINE})
    answers["/t2a_v2"] = (200, {"data": {"audio": SOUND.hex()}, "base_resp": FINE})
    answers["/audio/transcriptions"] = (200, {"text": "<b>what</b> was said"})
    answers["/music_generation"] = (200, {"base_resp": {"status_code": 1026, "status_msg": "sensitive"}})
    call = stage.daemon.call
    agent = stage.daemon.agent("painter")
    call("POST", "/api/media/image", {"prompt": "a dot <i>in fog</i>", "agent_id": agent})
    call("POST", "/api/media/speech", {"text": "hush", "agent_id": agent})
    request = urllib.request.Request(stage.daemon.url + "/api/media/transcribe", data=SOUND, method="POST", headers={"content-type": "audio/wav"})
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read()
    try:
        call("POST", "/api/media/music", {"prompt": "a song"})
    except urllib.error.HTTPError as error:
        assert error.code == 400, error
    return agent


@config(MINIMAX + GROQ)
def case_the_gallery_shows_media_with_their_cost(stage):
    fill_gallery(stage)
    page = stage.open("#/library/media")
    cards = page.get_by_role("list", name="Media").locator(".media-card")
    expect(cards).to_have_count(4)
    expect(cards.locator("h2")).to_contain_text(["a song", "Transcript of", "hush", "a dot <i>in fog</i>"])
    song, transcript, speech, image = (cards.nth(at) for at in range(4))
    picture = image.locator("img")
    until("the image is shown", lambda: picture.evaluate("(image) => image.naturalWidth") == 16)
    expect(image).to_contain_text("minimax / image-01 · 16 × 16")
    expect(image).to_contain_text("$0.0035")
    expect(image.get_by_role("link", name="painter")).to_be_visible()
    expect(song).to_contain_text("failed")
    expect(song.locator(".fault")).to_contain_text("sensitive")
    expect(transcript).to_contain_text("<b>what</b> was said")
    expect(transcript).to_contain_text("API client")
    expect(speech).to_contain_text("1 s")
    speech.get_by_role("button", name="Play the recording: hush").click()
    until("the recording is read", lambda: speech.locator("audio").evaluate("(player) => player.duration") == 1)
    with page.expect_download() as saved:
        speech.get_by_role("button", name="Download: hush").click()
    assert saved.value.suggested_filename.endswith(".wav"), saved.value.suggested_filename
    expect(page.get_by_text("4 items; together $0.00")).to_be_visible()
    # The choice is part of the address, and outlives a reload.
    page.get_by_label("Kind", exact=True).select_option("image")
    expect(cards).to_have_count(1)
    page.get_by_label("Agent", exact=True).fill("painter")
    page.keyboard.press("Tab")
    page.wait_for_url("**/#/library/media?*agent=*")
    page.reload()
    expect(cards).to_have_count(1)
    expect(page.get_by_label("Kind", exact=True)).to_have_value("image")
    page.get_by_label("Kind", exact=True).select_option("")
    expect(cards).to_have_count(2)
    page.get_by_label("Status", exact=True).select_option("failed")
    expect(page.get_by_text("Nothing matches the filters.")).to_be_visible()
    page.get_by_label("Status", exact=True).select_option("")
    expect(cards).to_have_count(2)
    # Deleted with its file.
    url = tasks(stage)[0]["files"][0]["url"]
    page.get_by_role("button", name="Delete: a dot").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(cards).to_have_count(1)
    expect(cards.first).to_be_focused()
    try:
        stage.daemon.call("GET", url)
        raise AssertionError("the file is still there")
    except urllib.error.HTTPError as error:
        assert error.code == 404, error


@config(MINIMAX + GROQ)
def case_the_gallery_follows_what_is_open_and_grows(stage):
    answers = stage.scripted.answers
    answers["/video_generation"] = (200, {"task_id": "t1", "base_resp": FINE})
    answers["/query/video_generation?task_id=t1"] = (200, {"status": "Processing", "base_resp": FINE})
    answers["/t2a_v2"] = (200, {"data": {"audio": SOUND.hex()}, "base_resp": FINE})
    for at in range(30):
        stage.daemon.call("POST", "/api/media/speech", {"text": f"speech {at}"})
    stage.daemon.call("POST", "/api/media/video", {"prompt": "a film"})
    page = stage.open("#/library/media")
    cards = page.get_by_role("list", name="Media").locator(".media-card")
    film = cards.first
    expect(film).to_contain_text("In progress")
    expect(film.get_by_role("button", name="Delete")).to_have_count(0)
    second = cards.nth(1)
    second.get_by_role("button", name="Play the recording").click()
    expect(second.locator("audio")).to_have_count(1)
    page.get_by_role("button", name="Show more").click()
    expect(cards).to_have_count(31)
    answers["/query/video_generation?task_id=t1"] = (200, {"status": "Fail", "base_resp": FINE})
    expect(film).to_contain_text("failed")
    # What plays goes on.
    expect(second.locator("audio")).to_have_count(1)
    expect(cards).to_have_count(31)


@config(MINIMAX + GROQ)
def case_gallery_pictures(stage):
    fill_gallery(stage)
    stage.shoot_all("media", "#/library/media", lambda page: expect(page.locator(".media-card")).to_have_count(4))


if __name__ == "__main__":
    run(__import__("__main__"))
