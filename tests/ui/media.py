"""What tools of media made, in the chat."""

import base64

from chat import PIXEL, open_agent, say, settled, turns
from stage import config, expect, run, until

# A second of silence: 8,000 samples of 8 bits.
SOUND = b"RIFF\x64\x1f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x40\x1f\0\0" + b"\x80" * 8000
MINIMAX = '[providers.minimax]\nbase_url = "{scripted}"\napi_key_env = "TEST_MODEL_KEY"\n'
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


if __name__ == "__main__":
    run(__import__("__main__"))
