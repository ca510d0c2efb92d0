"""The chat, driven as a person does it."""

import base64
import json
import re
import threading
import urllib.request

import access
from stage import Gate, config, expect, last_text, run, until

ANSWER = """Here is **what I found**.

## Findings

1. The *first* thing with `code`
2. The second one
   - a nested item with a [link](https://example.com/a)

| Name | Value |
| --- | ---: |
| alpha | 1 |
| beta | 22 |

```rust
fn main() {
    // the answer
    let x = 42;
    println!("{x}");
}
```

> Said by somebody wise.
"""

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAGklEQVR42mNk+M9AEmAiTfmohlENoxqGjgYAUOIBH+4bUxQAAAAASUVORK5CYII=")


def prompt(page):
    return page.get_by_label("Message", exact=True)


def turns(page):
    return page.locator("article.turn")


def open_agent(stage, name="ada", rest=""):
    """Makes an agent and opens its chat; gives its id."""
    agent = stage.daemon.agent(name, rest)
    stage.open(f"#/chat/{agent}")
    expect(prompt(stage.page)).to_have_attribute("placeholder", f"Message {name}")
    return agent


def say(page, text):
    prompt(page).fill(text)
    page.keyboard.press("Enter")


def settled(page, count=1):
    """All turns have ended and show what is stored of them."""
    expect(page.locator("article.turn.live")).to_have_count(0)
    expect(turns(page)).to_have_count(count)
    expect(turns(page).last.get_by_role("button", name="Ask again")).to_be_attached()


def case_an_agent_is_created_from_a_type_and_from_a_manifest(stage):
    page = stage.open()
    # A manifest that is wrong is refused at each check; the browser notes that.
    stage.expect_refusals(400)
    page.get_by_role("button", name="New agent").first.click()
    dialog = page.get_by_role("dialog", name="New agent")
    expect(dialog.get_by_role("option").first).to_contain_text("Blank agentStart from scratch")
    expect(dialog.get_by_role("status")).to_contain_text("Valid. ")
    dialog.get_by_role("button", name="TOML").click()
    manifest = dialog.get_by_label("Manifest", exact=True)
    manifest.fill('name = "mine"\nsystem_prompt = 5\n')
    expect(dialog.get_by_role("alert").filter(has_text="system_prompt")).to_be_visible()
    expect(manifest).to_have_attribute("aria-invalid", "true")
    access.check(page, "new agent, wrong")
    stage.shoot("chat-new-agent-wrong")
    manifest.fill('name = "mine"\ndescription = "Made by hand"\n')
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("mine")
    dialog.get_by_label("Name", exact=True).fill("assistant")
    expect(dialog.get_by_role("alert").filter(has_text="already")).to_be_visible()
    dialog.get_by_label("Name", exact=True).fill("mine")
    expect(dialog.get_by_role("status")).to_contain_text("Valid. ")
    dialog.get_by_role("button", name="Create agent").click()
    expect(page.get_by_role("heading", name="mine", level=1)).to_be_visible()
    # From a type: the first that the daemon brought.
    page.get_by_role("button", name="New agent").first.click()
    # The name of a type that an agent has already gets a number.
    types = dialog.get_by_role("listbox", name="Agent types").get_by_role("option")
    types.filter(has_text="assistant").first.click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("assistant-2")
    chosen = types.nth(1)
    name = chosen.locator(".name").inner_text()
    chosen.click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_value(name)
    # A row that is seen in part only is brought into sight by the focus, and taken all the same.
    half = types.nth(3)
    name = half.locator(".name").inner_text()
    half.click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_value(name)
    dialog.get_by_label("Name", exact=True).fill("of-a-type")
    expect(dialog.get_by_role("status")).to_contain_text("Valid. ")
    stage.shoot("chat-new-agent")
    dialog.get_by_role("button", name="Create agent").click()
    expect(page.get_by_role("heading", name="of-a-type", level=1)).to_be_visible()
    names = {agent["name"] for agent in stage.daemon.call("GET", "/api/agents")}
    assert {"mine", "of-a-type"} <= names, names


def case_an_answer_is_streamed_and_stored(stage):
    gate = Gate()
    stage.model.respond = lambda messages, body: {"text": ["One ", "two ", "three."], "gate": gate}
    page = stage.page
    open_agent(stage)
    say(page, "count")
    gate.let()
    expect(turns(page).locator(".md")).to_have_text("One ")
    gate.let()
    expect(turns(page).locator(".md")).to_have_text("One two ")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    gate.open()
    settled(page)
    foot = turns(page).locator(".answer .turn-foot")
    expect(foot).to_contain_text("120 → 3 tokens")
    # 120 tokens at $2.50 and 3 at $10 for a million.
    expect(foot.locator(".cost")).to_have_text("$0.0003")
    expect(foot).to_contain_text("openai/echo-1")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_hidden()


def case_markdown_is_shown_and_markup_is_not_obeyed(stage):
    stage.model.respond = lambda messages, body: ANSWER + "\n<img src=x onerror=alert(1)> <script>alert(2)</script> [x](javascript:alert(3))\n"
    page = stage.page
    open_agent(stage)
    say(page, "go")
    settled(page)
    body = turns(page).locator(".md")
    expect(body.locator("h4")).to_have_text("Findings")
    expect(body.locator("ol > li")).to_have_count(2)
    expect(body.locator("table td").nth(3)).to_have_text("22")
    expect(body.locator("blockquote")).to_contain_text("wise")
    expect(body.locator(".code pre .t-k").first).to_have_text("fn")
    expect(body.locator("a")).to_have_attribute("rel", re.compile("noopener"))
    expect(body).to_contain_text("<img src=x onerror=alert(1)> <script>alert(2)</script> [x](javascript:alert(3))")
    assert body.locator("img, script").count() == 0 and body.locator("a").count() == 1


def case_a_running_answer_is_stopped_and_asked_again(stage):
    gate = Gate()
    stage.model.respond = lambda messages, body: {"text": ["begun ", "never"], "gate": gate}
    page = stage.page
    open_agent(stage)
    say(page, "long story")
    gate.let()
    expect(turns(page).locator(".md")).to_have_text("begun ")
    page.keyboard.press("Escape")
    settled(page)
    expect(turns(page)).to_contain_text("Stopped.")
    expect(turns(page).locator(".md")).to_contain_text("begun")
    stage.model.respond = lambda messages, body: f"again: {last_text(messages)}"
    turns(page).get_by_role("button", name="Ask again").click()
    settled(page, 2)
    expect(turns(page).last.locator(".md")).to_have_text("again: long story")


def case_a_failed_turn_says_why_and_is_tried_again(stage):
    stage.model.respond = lambda messages, body: {"status": 400}
    page = stage.page
    open_agent(stage)
    say(page, "hello")
    expect(turns(page).get_by_role("alert")).to_be_visible()
    settled(page)
    access.check(page, "a failed turn")
    stage.shoot("chat-failed-turn")
    stage.model.respond = lambda messages, body: "now it works"
    turns(page).get_by_role("button", name="Try again").click()
    settled(page, 2)
    expect(turns(page).last.locator(".md")).to_have_text("now it works")


def case_tool_calls_are_folded_with_input_result_and_time(stage):
    gate = Gate()

    def respond(messages, body):
        if messages[-1]["role"] == "tool":
            return {"text": "Done.", "gate": gate}
        return {"text": "I note it.", "calls": [("memory_store", {"key": "colour", "value": "blue"}), ("file_read", {"path": "missing.txt"})]}

    stage.model.respond = respond
    page = stage.page
    open_agent(stage, rest='[capabilities]\ntools = ["*"]\nmemory_write = ["*"]\n')
    say(page, "remember blue")
    # While the turn runs, the results are there already; which call began first is not said.
    expect(page.locator("details.tool")).to_have_count(2)
    store, read = (page.locator("details.tool").filter(has=page.get_by_text(name, exact=True)) for name in ["memory_store", "file_read"])
    store.locator("summary").click()
    expect(store).to_contain_text("Result")
    expect(read.locator("summary")).to_contain_text("failed")
    page.keyboard.press("Tab")
    expect(store.get_by_role("button", name="Copy the code").first).to_be_focused()
    gate.open()
    settled(page)
    # What is stored took the place of what was streamed.
    assert store.get_attribute("open") is not None, "what was opened stays open"
    assert read.get_attribute("open") is None, "what was not opened stays folded"
    expect(store.get_by_role("button", name="Copy the code").first).to_be_focused()
    page.reload()
    settled(page)
    expect(store.locator("summary")).to_contain_text(re.compile(r"memory_store.*colour, blue.*\d+ ms|memory_store.*\d", re.S))
    assert store.get_attribute("open") is None, "a tool call of the past is folded"
    store.locator("summary").click()
    expect(store).to_contain_text('"key": "colour"')
    expect(store.locator("h3")).to_have_text(["Input", "Result"])
    expect(read.locator("summary")).to_contain_text("failed")
    read.locator("summary").click()
    expect(read.locator("h3")).to_have_text(["Input", "Error"])
    access.check(page, "tool calls")
    stage.shoot("chat-tools")


def case_memories_of_an_answer_are_listed_below_it(stage):
    page = stage.page
    agent = open_agent(stage)
    for content in ["Prefers tea from Ceylon.", "Drinks tea at five."]:
        stage.daemon.call("POST", "/api/memory", {"agent_id": agent, "content": content, "category": "work_style"})
    stage.model.respond = lambda messages, body: "Ceylon."
    say(page, "which tea?")
    settled(page)
    recalled = turns(page).last.locator("details.recalled")
    expect(recalled.locator("summary")).to_have_text("Recalled 2 memories")
    assert recalled.get_attribute("open") is None, "it is quiet"
    recalled.locator("summary").click()
    expect(recalled.get_by_role("listitem")).to_have_count(2)
    expect(recalled).to_contain_text("Prefers tea from Ceylon. work style")
    say(page, "thanks")
    settled(page, 2)
    expect(turns(page).last.locator(".recalled")).to_have_count(0)
    access.check(page, "recalled memories")


def case_files_are_attached_by_picking_pasting_and_dropping(stage):
    stage.model.respond = lambda messages, body: "I have read it."
    page = stage.page
    open_agent(stage)
    page.get_by_label("Files to attach").set_input_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"the notes say seven"})
    chips = page.get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(chips.filter(has_text="notes.txt")).to_contain_text("19 B")
    encoded = base64.b64encode(PIXEL).decode()
    paste = """([encoded, kind, type]) => {
      const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], `${kind}.png`, { type: "image/png" }));
      const target = kind === "pasted" ? document.getElementById("prompt") : document.querySelector(".log");
      if (kind === "pasted") target.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
      else for (const name of ["dragenter", "dragover", "drop"]) target.dispatchEvent(new DragEvent(name, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(paste, [encoded, "pasted", ""])
    expect(chips.filter(has_text="pasted.png")).to_have_attribute("data-state", "kept")
    page.evaluate(paste, [encoded, "dropped", ""])
    expect(chips.filter(has_text="dropped.png")).to_have_attribute("data-state", "kept")
    access.check(page, "attachments")
    stage.shoot("chat-attachments")
    chips.filter(has_text="dropped.png").get_by_role("button").click()
    expect(chips).to_have_count(2)
    say(page, "look at these")
    settled(page)
    sent = stage.model.requests[-1]["messages"][-1]["content"]
    text = json.dumps(sent)
    assert "the notes say seven" in text and text.count("data:image/png") == 1, text[:400]
    said = turns(page).locator(".said")
    expect(said.locator("details.attached summary")).to_contain_text("notes.txt")
    expect(said.get_by_role("button", name="Open pasted.png")).to_be_visible()
    picture = said.locator("img")
    until("the picture is shown", lambda: picture.evaluate("(image) => image.naturalWidth") == 16)
    # A reload shows it from the store.
    page.reload()
    settled(page)
    until("the picture is shown again", lambda: turns(page).locator("img").evaluate("(image) => image.naturalWidth") == 16)


def case_commands_are_completed_and_carried_out(stage):
    page = stage.page
    agent = open_agent(stage)
    prompt(page).fill("/")
    menu = page.get_by_role("listbox", name="Commands")
    expect(menu.get_by_role("option")).to_have_count(len(stage.daemon.call("GET", "/api/commands")["commands"]))
    access.check(page, "commands")
    stage.shoot("chat-commands")
    # On a phone the descriptions are read to their ends.
    wide = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    cut = menu.locator(".dim").evaluate_all("(nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth || getComputedStyle(node).whiteSpace === 'nowrap').map((node) => node.textContent)")
    assert cut == [], cut
    assert menu.evaluate("(menu) => menu.scrollWidth <= menu.clientWidth")
    page.set_viewport_size(wide)
    prompt(page).press_sequentially("us")
    expect(menu.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Tab")
    expect(prompt(page)).to_have_value("/usage")
    page.keyboard.press("Enter")
    expect(page.locator(".command-answer")).to_contain_text("input and 0 output tokens")
    before = stage.daemon.call("GET", f"/api/agents/{agent}")["session_id"]
    say(page, "/new notes")
    expect(page.locator(".chat-head .note")).to_contain_text("#notes")
    expect(page.locator(".command-answer")).to_contain_text("notes")
    after = stage.daemon.call("GET", f"/api/agents/{agent}")["session_id"]
    assert before != after and after in page.url
    stage.expect_refusals(400)
    say(page, "/stop now")
    expect(page.locator(".toast.bad")).to_contain_text("takes no arguments")
    expect(prompt(page)).to_have_value("/stop now")
    # What /think turned on goes with the messages.
    say(page, "/think on")
    expect(page.get_by_role("button", name="Thinking on")).to_be_visible()


def case_what_begins_with_a_slash_is_a_command_a_skill_or_said_to_be_neither(stage):
    stage.daemon.call("POST", "/api/skills/create", {"name": "tidy", "description": "Tidies a text.", "prompt_context": "Tidy it."})
    page = stage.page
    open_agent(stage)
    prompt(page).fill("/t")
    options = page.get_by_role("listbox", name="Commands").get_by_role("option")
    expect(options).to_have_count(2)
    expect(options.first).to_contain_text("/think")
    expect(options.last).to_contain_text("/tidy[text]Tidies a text.skill")
    # A skill is a message: its answer is streamed and stored.
    prompt(page).press_sequentially("idy this here")
    expect(options).to_have_count(0)
    page.keyboard.press("Enter")
    settled(page)
    expect(turns(page).locator(".said")).to_contain_text("/tidy this here")
    expect(turns(page).locator(".said")).not_to_contain_text("The user invokes")
    assert "[The user invokes the skill" in last_text(stage.model.requests[-1]["messages"])
    # Asked again, it is the same message.
    turns(page).get_by_role("button", name="Ask again").click()
    expect(page.get_by_role("group", name="Answers to this message")).to_contain_text("2 / 2")
    expect(page.locator("article.turn.live")).to_have_count(0)
    assert last_text(stage.model.requests[-1]["messages"]).count("[The user invokes") == 1
    page.reload()
    expect(turns(page)).to_have_count(2)
    # What there is not is said while it is typed, and is not sent by mistake.
    prompt(page).fill("/tool list files")
    note = page.get_by_role("status").filter(has_text="There is no command or skill “/tool”.")
    expect(note).to_be_visible()
    access.check(page, "an unknown command")
    stage.shoot("chat-unknown-command")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Send as a message")).to_be_focused()
    expect(turns(page)).to_have_count(2)
    page.keyboard.press("Enter")
    settled(page, 3)
    expect(turns(page).last).to_contain_text("echo: /tool list files")
    expect(prompt(page)).to_be_focused()
    expect(note).to_be_hidden()
    # An agent that has other skills only does not have this one.
    stage.daemon.call("POST", "/api/skills/create", {"name": "other", "description": "Another.", "prompt_context": "Do it."})
    page.goto("about:blank")
    open_agent(stage, "bob", 'skills = ["other"]\n')
    prompt(page).fill("/ti")
    expect(page.get_by_role("status").filter(has_text="There is no command or skill “/ti”.")).to_be_visible()


def case_a_reload_in_the_middle_shows_the_answer_so_far(stage):
    gate = Gate()

    def respond(messages, body):
        if messages[-1]["role"] == "tool":
            return {"text": ["after ", "the ", "tool"], "gate": gate}
        return {"text": "before", "calls": [("memory_list", {})]}

    stage.model.respond = respond
    page = stage.page
    open_agent(stage, rest='[capabilities]\ntools = ["*"]\n')
    say(page, "work for a while")
    gate.let()
    expect(turns(page)).to_contain_text("after ")
    page.reload()
    live = page.locator("article.turn.live")
    expect(live.locator(".said")).to_contain_text("work for a while")
    expect(live).to_contain_text("before")
    expect(live).to_contain_text("after ")
    expect(live.locator("details.tool")).to_have_count(1)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    gate.let()
    expect(live).to_contain_text("after the ")
    gate.open()
    settled(page)
    expect(turns(page)).to_contain_text("after the tool")
    assert turns(page).inner_text().count("before") == 1
    # A turn that somebody else begins is seen as it comes.
    held = Gate()
    stage.model.respond = lambda messages, body: {"text": ["from ", "elsewhere"], "gate": held}
    agent, session = re.search(r"#/chat/([^/]+)/([^/]+)", page.url).groups()
    other = threading.Thread(target=lambda: stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "hello from a script", "session_id": session}))
    other.start()
    held.let()
    expect(page.locator("article.turn.live")).to_contain_text("hello from a script")
    expect(page.locator("article.turn.live")).to_contain_text("from ")
    held.open()
    settled(page, 2)
    other.join()


def case_sessions_have_titles_and_can_be_renamed_in_the_list(stage):
    """A session is called what its first message says, until a person gives it a name; what waits for others is marked as the default."""
    page = stage.page
    agent = open_agent(stage)
    say(page, "# Plan the *garden*\nwith herbs")
    settled(page)
    page.get_by_role("button", name="New session").click()
    expect(page.get_by_text("Start a conversation with ada")).to_be_visible()
    say(page, "bake a cake")
    settled(page)
    options = page.get_by_role("listbox", name="Sessions").get_by_role("option")
    expect(options).to_have_count(2)
    expect(options.nth(0)).to_contain_text("bake a cake")
    expect(options.nth(1)).to_contain_text("Plan the garden")
    expect(options.nth(1)).to_contain_text("default")
    page.get_by_role("listbox", name="Sessions").focus()
    page.keyboard.press("F2")
    page.get_by_role("textbox", name="Name").fill("cakes")
    page.keyboard.press("Enter")
    expect(options.nth(0)).to_contain_text("cakes")
    stage.open(f"#/agent/{agent}")
    expect(page.get_by_role("region", name="Conversations")).to_contain_text("Plan the garden")
    access.check(page, "titles on the page of an agent")


def case_a_message_is_edited_and_the_answer_is_a_branch(stage):
    """What is sent in place of an earlier message goes to a session of its own; the original stays."""
    page = stage.page
    open_agent(stage)
    say(page, "hello")
    settled(page)
    say(page, "waht is this?")
    settled(page, 2)
    original = page.url
    turns(page).last.get_by_role("button", name="Edit", exact=True).click()
    expect(prompt(page)).to_have_value("waht is this?")
    expect(prompt(page)).to_be_focused()
    expect(page.locator(".edit-note")).to_contain_text("Sending starts a branch")
    access.check(page, "a message that is edited")
    page.keyboard.press("Escape")
    expect(page.locator(".edit-note")).to_be_hidden()
    expect(prompt(page)).to_have_value("")
    turns(page).last.get_by_role("button", name="Edit", exact=True).click()
    prompt(page).fill("what is this?")
    page.keyboard.press("Enter")
    settled(page, 2)
    expect(turns(page).last.locator(".md")).to_have_text("echo: what is this?")
    expect(turns(page).first.locator(".md")).to_have_text("echo: hello")
    assert page.url != original
    # The model saw the branch alone.
    said = [message["content"] for message in stage.model.requests[-1]["messages"] if message["role"] == "user"]
    assert "waht" not in json.dumps(said), said
    turns(page).first.get_by_role("button", name="Branch from here").click()
    expect(turns(page)).to_have_count(1)
    options = page.get_by_role("listbox", name="Sessions").get_by_role("option")
    expect(options).to_have_count(3)
    stage.open(original[original.index("#"):])
    settled(page, 2)
    expect(turns(page).last.locator(".md")).to_have_text("echo: waht is this?")
    # A command that is refused is given back.
    stage.expect_refusals(400, 404)
    prompt(page).fill("/usage now")
    page.keyboard.press("Enter")
    expect(page.locator(".toast.bad")).to_be_visible()
    expect(prompt(page)).to_have_value("/usage now")


def case_an_answer_is_asked_for_again_in_its_place(stage):
    """The new answer takes the place of the one before, which is a step away, also after a reload; later turns stay below."""
    page = stage.page
    answers = iter(["first", "second", "third"])
    stage.model.respond = lambda messages, body: next(answers, "other")
    open_agent(stage)
    say(page, "say something")
    settled(page)
    shown = page.locator("article.turn:visible")
    shown.get_by_role("button", name="Ask again").click()
    expect(shown.locator(".md")).to_have_text("second")
    settled(page, 2)
    expect(shown).to_have_count(1)
    steps = page.get_by_role("group", name="Answers to this message")
    expect(steps).to_contain_text("2 / 2")
    shown.get_by_role("button", name="Ask again").click()
    settled(page, 3)
    expect(shown.locator(".md")).to_have_text("third")
    steps.get_by_role("button", name="Earlier answer").click()
    expect(shown.locator(".md")).to_have_text("second")
    expect(steps).to_contain_text("2 / 3")
    expect(steps.get_by_role("button", name="Earlier answer")).to_be_focused()
    access.check(page, "answers to one message")
    expect(steps).to_contain_text("Left out of later prompts")
    # The daemon keeps them: another browser shows the same.
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(shown.locator(".md")).to_have_text("third")
    expect(steps).to_contain_text("3 / 3")
    say(page, "and now?")
    settled(page, 4)
    expect(shown).to_have_count(2)
    expect(steps).to_have_count(1)
    # The model saw the newest answer alone.
    said = [message["content"] for message in stage.model.requests[-1]["messages"] if message["role"] != "system"]
    assert said == ["say something", "third", "and now?"], said
    # An earlier message is answered again in a branch, and the original stays; an edited one leaves none of its answers in the branch.
    original = page.url
    shown.first.get_by_role("button", name="Ask again").click()
    settled(page, 1)
    expect(shown.locator(".md")).to_have_text("other")
    assert page.url != original
    said = [message["content"] for message in stage.model.requests[-1]["messages"] if message["role"] != "system"]
    assert said == ["say something"], said
    stage.open(original[original.index("#"):])
    settled(page, 4)
    expect(shown).to_have_count(2)
    shown.first.get_by_role("button", name="Edit", exact=True).click()
    prompt(page).fill("say something else")
    page.keyboard.press("Enter")
    expect(shown).to_have_count(1)
    expect(shown.locator(".md")).to_have_text("other")
    said = [message["content"] for message in stage.model.requests[-1]["messages"] if message["role"] != "system"]
    assert said == ["say something else"], said
    # How much of the context the last prompt took is known of known models only.
    expect(page.get_by_role("meter")).to_have_count(0)


@config('[providers.groq]\nbase_url = "{model}"\n[web.fetch]\nssrf_allowed_hosts = ["127.0.0.1"]\n')
def case_the_model_is_chosen_in_the_chat(stage):
    """Only models that can be asked are offered, and the agent answers with the chosen one."""
    page = stage.page
    stage.daemon.call("POST", "/api/providers/groq/key", {"api_key": "gsk_x"})
    agent = open_agent(stage)
    page.get_by_role("button", name="Model: echo-1").click()
    dialog = page.get_by_role("dialog", name="Model of ada")
    models = dialog.get_by_role("listbox", name="Models").get_by_role("option")
    # Those of the present provider stand first.
    expect(models.first).to_contain_text("OpenAI")
    dialog.get_by_label("Search models").fill("claude")
    expect(models).to_have_count(0)
    dialog.get_by_label("Search models").fill("no such model")
    expect(dialog).to_contain_text("No model has")
    dialog.get_by_text("A model that is not listed").click()
    dialog.get_by_label("Provider").fill("gorq")
    dialog.get_by_label("Model id").fill("llama")
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_contain_text("There is no provider “gorq”.")
    dialog.get_by_label("Search models").fill("llama")
    expect(models.first).to_contain_text("Groq")
    access.check(page, "the choice of a model in the chat")
    stage.shoot("chat-models")
    models.first.click()
    dialog.get_by_role("button", name="Use this model").click()
    expect(page.locator(".chat-head .note")).to_contain_text("groq")
    model = stage.daemon.call("GET", f"/api/agents/{agent}")["model"]
    assert model["provider"] == "groq" and "llama" in model["model"], model
    say(page, "hello")
    settled(page)
    expect(turns(page).last.locator(".turn-foot .model")).to_contain_text("groq/")
    expect(page.get_by_role("meter", name=re.compile("^Context: 120 of "))).to_contain_text("< 1 %")


def case_sessions_are_named_searched_and_exported(stage):
    page = stage.page
    agent = open_agent(stage)
    say(page, "the word is rhubarb")
    settled(page)
    page.get_by_role("button", name="New session").click()
    expect(page.get_by_text("Start a conversation with ada")).to_be_visible()
    say(page, "nothing of it here")
    settled(page)
    page.get_by_role("button", name="More").last.click()
    page.get_by_role("menuitem", name="Rename this session").click()
    page.get_by_role("textbox", name="Name").fill("second thoughts")
    page.keyboard.press("Enter")
    sessions = page.get_by_role("listbox", name="Sessions")
    expect(sessions.get_by_role("option")).to_have_count(2)
    expect(sessions.get_by_role("option").first).to_contain_text("second thoughts")
    search = page.get_by_label("Search sessions")
    search.fill("rhubarb")
    expect(sessions.get_by_role("option")).to_have_count(1)
    expect(sessions.get_by_role("option")).to_contain_text("rhubarb")
    search.press("Enter")
    expect(turns(page).locator(".said")).to_contain_text("rhubarb")
    search.fill("second")
    expect(sessions.get_by_role("option")).to_contain_text("second thoughts")
    search.fill("not found")
    expect(page.get_by_text("No results for")).to_be_visible()
    search.fill("")
    page.get_by_role("button", name="More").last.click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export as JSON lines").click()
    lines = [json.loads(line) for line in open(download.value.path())]
    assert lines[0]["agent_id"] == agent and "rhubarb" in lines[1]["content"]
    # The current session is deleted: a fresh one takes its place.
    deleted = page.url.rsplit("/", 1)[1]
    page.get_by_role("button", name="More").last.click()
    stage.shoot("chat-menu")
    page.get_by_role("menuitem", name="Delete this session").click()
    access.check(page, "confirm")
    stage.shoot("chat-confirm")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Start a conversation with ada")).to_be_visible()
    expect(sessions.get_by_role("option")).to_have_count(2)
    listed = [session["id"] for session in stage.daemon.call("GET", f"/api/agents/{agent}/sessions")["sessions"]]
    assert deleted not in listed and page.url.rsplit("/", 1)[1] in listed
    # Long sessions come by pages: the oldest messages are there after scrolling up.
    session = stage.daemon.call("POST", f"/api/agents/{agent}/sessions", {})["session_id"]
    for n in range(45):
        stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": f"line {n}", "session_id": session})
    stage.open(f"#/chat/{agent}/{session}")
    expect(turns(page).last.locator(".said")).to_contain_text("line 44")
    assert turns(page).count() < 45
    for _ in range(3):
        page.locator(".log").evaluate("(log) => { log.scrollTop = 0; }")
    expect(turns(page)).to_have_count(45)
    expect(turns(page).first.locator(".said")).to_contain_text("line 0")


@config('api_key = "right-key/+="\n')
def case_the_key_is_asked_for_and_kept_in_the_tab_only(stage):
    page = stage.open()
    stage.expect_refusals(401)
    login = page.get_by_role("dialog", name="Sign in to agentsvc")
    field = login.get_by_label("API key")
    expect(field).to_be_focused()
    access.check(page, "login")
    field.fill("wrong")
    page.keyboard.press("Enter")
    expect(login.get_by_role("alert")).to_contain_text("not valid")
    stage.shoot("login-wrong")
    page.keyboard.press("Escape")
    expect(login).to_be_visible()
    field.fill("right-key/+=")
    page.keyboard.press("Enter")
    expect(login).to_have_count(0)
    expect(prompt(page)).to_be_enabled()
    # Commands and uploads carry it too, and no address has it.
    say(page, "/usage")
    expect(page.locator(".command-answer")).to_contain_text("tokens")
    assert "right" not in page.url
    stored = page.evaluate("() => [JSON.stringify(localStorage), document.cookie, JSON.stringify(sessionStorage)]")
    assert "right" not in stored[0] + stored[1] and "right-key" in stored[2], stored
    page.reload()
    expect(prompt(page)).to_be_enabled()
    page.get_by_role("button", name="More").first.click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(login).to_be_visible()
    other = stage.new_page(color_scheme="dark")
    stage.open(page=other)
    expect(other.get_by_role("dialog", name="Sign in to agentsvc")).to_be_visible()
    access.check(other, "login dark")
    stage.shoot("login-dark", other)


def case_everything_can_be_done_with_the_keyboard(stage):
    stage.daemon.agent("bea")
    page = stage.page
    open_agent(stage, "ada")
    expect(prompt(page)).to_be_focused()
    search = page.get_by_label("Search agents")
    search.focus()
    page.keyboard.type("be")
    expect(page.get_by_role("listbox", name="Agents").get_by_role("option")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="bea", level=1)).to_be_visible()
    search.focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    expect(page.get_by_role("listbox", name="Agents").get_by_role("option")).to_have_count(3)
    page.get_by_role("listbox", name="Agents").focus()
    for key in ["Home", "End", "ArrowUp"]:
        page.keyboard.press(key)
    active = page.get_by_role("listbox", name="Agents").get_attribute("aria-activedescendant")
    expect(page.locator(f"#{active}")).to_contain_text("bea")
    # From the top of the page on: the way to the message box, and a message.
    page.reload()
    expect(prompt(page)).to_be_focused()
    back = access.tab_order(page, 30, "Shift+Tab", until="Skip to the page")
    assert back[-1] == "Skip to the page" and all(back), back
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    names = access.tab_order(page, 20, until="Message")
    assert names[-1] == "Message" and all(names), names
    prompt(page).focus()
    page.keyboard.type("by hand")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("in two lines")
    page.keyboard.press("Enter")
    settled(page)
    expect(turns(page).locator(".said .plain")).to_have_text("by hand\nin two lines")
    # The last message comes back for another try.
    page.keyboard.press("ArrowUp")
    expect(prompt(page)).to_have_value("by hand\nin two lines")
    prompt(page).fill("")
    page.get_by_role("listbox", name="Agents").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    access.check(page, "shortcuts")
    stage.shoot("shortcuts")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def case_a_phone_has_the_lists_in_a_drawer(stage):
    stage.daemon.agent("ada")
    page = stage.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    stage.open(page=page)
    expect(prompt(page)).to_be_enabled()
    expect(page.get_by_role("listbox", name="Agents")).to_be_hidden()
    page.get_by_role("button", name="Agents and sessions").click()
    expect(page.get_by_role("listbox", name="Agents")).to_be_visible()
    stage.shoot("chat-phone-drawer", page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox", name="Agents")).to_be_hidden()
    expect(page.get_by_role("button", name="Agents and sessions")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("option").filter(has_text="ada").click()
    expect(page.get_by_role("heading", name="ada", level=1)).to_be_visible()
    expect(page.get_by_role("listbox", name="Agents")).to_be_hidden()
    say(page, "from a phone")
    settled(page)
    expect(turns(page).locator(".md")).to_have_text("echo: from a phone")


def case_a_phone_has_room_to_stop_an_answer(stage):
    gate = Gate()
    stage.model.respond = lambda messages, body: {"text": ["begun ", "never"], "gate": gate}
    agent = stage.daemon.agent("ada", 'capabilities.tools = ["system_time"]')
    page = stage.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    stage.open(f"#/chat/{agent}", page)
    expect(prompt(page)).to_be_enabled()
    # A new agent is offered what its tools can do, and nothing else.
    offered = page.get_by_role("list", name="Suggestions")
    expect(offered.get_by_role("button", name="What time is it in Tokyo?")).to_be_visible()
    expect(offered).not_to_contain_text("Remember something")
    say(page, "long story")
    gate.let()
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible()
    stage.shoot("chat-phone-busy", page)
    box = stop.bounding_box()
    frame = page.locator(".composer .box").bounding_box()
    assert box["x"] + box["width"] <= frame["x"] + frame["width"], (box, frame)
    assert page.get_by_role("button", name="Model: echo-1").locator(".cut").evaluate("(node) => node.scrollWidth <= node.clientWidth")
    stop.click()
    settled(page)
    expect(turns(page)).to_contain_text("Stopped.")


def case_ten_thousand_agents_are_no_burden(stage):
    for first in range(0, 10_000, 5_000):
        manifests = [{"manifest_toml": f'name = "agent-{n:05}"\n'} for n in range(first, first + 5_000)]
        stage.daemon.call("POST", "/api/agents/bulk", {"agents": manifests})
    page = stage.page
    stage.open()
    # What counts is the number of rows that are built; `flood.py` looks at how long the page works.
    agents = page.get_by_role("listbox", name="Agents")
    expect(page.locator(".counter")).to_have_text("10,001")
    expect(prompt(page)).to_be_enabled()
    agents.focus()
    for _ in range(40):
        page.keyboard.press("End")
        page.wait_for_function("() => document.querySelectorAll('.side .row').length < 80")
    shown = agents.get_by_role("option").count()
    assert 5 < shown < 60, f"{shown} rows are built"
    search = page.get_by_label("Search agents")
    search.fill("agent-09999")
    expect(agents.get_by_role("option")).to_have_count(1)
    search.press("Enter")
    expect(page.get_by_role("heading", name="agent-09999", level=1)).to_be_visible()
    stage.shoot("chat-10000-agents")


def case_what_no_person_wrote_is_a_folded_card(stage):
    """Messages of triggers and schedules do not look as if the person had typed them."""
    agent = open_agent(stage)
    page = stage.page
    say(page, "typed by hand")
    settled(page)
    stage.daemon.call("POST", "/api/triggers", {"agent_id": agent, "pattern": {"custom": {"event_type": "deployed"}}, "prompt_template": "A deploy: {{event}}"})
    stage.daemon.call("POST", "/api/events", {"event_type": "deployed", "payload": {"version": 3}})
    job = stage.daemon.call("POST", "/api/cron/jobs", {"name": "nightly", "agent_id": agent, "schedule": "@daily", "prompt": "Check the lights"})["job_id"]
    stage.daemon.call("POST", f"/api/cron/jobs/{job}/run")
    until("all have run", lambda: len(stage.daemon.call("GET", f"/api/agents/{agent}/traces")["traces"]) == 3)
    page.reload()
    expect(turns(page)).to_have_count(3)
    expect(turns(page).locator(".bubble")).to_have_count(1)
    trigger = turns(page).filter(has_text="Trigger: deployed")
    expect(trigger.locator(".said").get_by_text("A deploy:")).to_be_hidden()
    trigger.locator("summary").first.click()
    expect(trigger.locator(".said").get_by_text("A deploy:")).to_be_visible()
    expect(turns(page).filter(has_text="Schedule: Check the lights").locator(".said summary")).to_have_count(1)
    access.check(page, "messages that no person wrote")
    stage.shoot("chat-sent")
    # Whatever a person writes is theirs, also an event.
    say(page, 'I saw {"kind":"custom","event_type":"deployed"} in the log')
    expect(turns(page).last.locator(".bubble")).to_contain_text("I saw")
    settled(page, 4)
    page.reload()
    expect(turns(page).last.locator(".bubble")).to_contain_text("I saw")


def case_ways_on_are_offered_after_an_answer(stage):
    """What to ask next fits the answer and the tools of the agent; it goes while one types, and for good when it is hidden."""
    stage.model.respond = lambda messages, body: "```sh\nmake\n```\n" if "code" in last_text(messages) else "x" * 1000
    open_agent(stage, rest='[capabilities]\ntools = ["file_write"]\n')
    page = stage.page
    ways = page.get_by_role("group", name="Suggestions")
    expect(ways).to_be_hidden()
    say(page, "some code")
    settled(page)
    expect(ways.get_by_role("button", name="Explain the code")).to_be_visible()
    expect(ways.get_by_role("button", name="Remember this")).to_have_count(0)
    access.check(page, "suggestions after an answer")
    stage.shoot("chat-suggestions")
    prompt(page).fill("typing")
    expect(ways).to_be_hidden()
    prompt(page).fill("")
    say(page, "now a long one")
    settled(page, 2)
    ways.get_by_role("button", name="Shorter, please").click()
    settled(page, 3)
    expect(turns(page).last.locator(".bubble")).to_have_text("Summarize this in three sentences.")
    ways.get_by_role("button", name="Hide suggestions in this tab").click()
    say(page, "some code")
    settled(page, 4)
    expect(ways).to_be_hidden()


def case_a_conversation_is_shared_as_markdown(stage):
    stage.model.respond = lambda messages, body: "It is **noon**." if messages[-1]["role"] == "tool" else {"calls": [("system_time", {})]}
    open_agent(stage, rest='[capabilities]\ntools = ["system_time"]\n')
    page = stage.page
    say(page, "what time is it?")
    settled(page)
    stage.model.respond = lambda messages, body: "It is *one*."
    turns(page).last.hover()
    turns(page).last.get_by_role("button", name="Ask again").click()
    expect(turns(page).last).to_contain_text("It is one.")
    page.get_by_role("button", name="More").last.click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Export as Markdown").click()
    text = open(download.value.path()).read()
    assert text.startswith("# Conversation with ada") and "## You\n\nwhat time is it?" in text and "## ada\n\nIt is *one*." in text, text
    assert "noon" not in text and "system_time" not in text, text
    assert download.value.suggested_filename.endswith(".md")


@config('[approval]\nrequire_approval = ["memory_store"]\n')
def case_marks_follow_while_the_list_is_held(stage):
    """What agents do is shown also while the pointer is on their list; only their order waits."""
    stage.model.respond = lambda messages, body: {"calls": [("memory_store", {"key": "a", "value": "b"})]}
    open_agent(stage)
    page = stage.page
    other = stage.daemon.agent("busy", '[capabilities]\ntools = ["*"]\nmemory_write = ["*"]\n')
    page.reload()
    row = page.get_by_role("listbox", name="Agents").get_by_role("option").filter(has_text="busy")
    row.hover()
    threading.Thread(target=stage.daemon.call, args=("POST", f"/api/agents/{other}/message", {"message": "keep it"}), daemon=True).start()
    until("it waits", lambda: stage.daemon.call("GET", "/api/approvals?status=pending")["total"] == 1)
    expect(row.get_by_role("img", name="waits for your approval")).to_be_visible()


@config('[approval]\nrequire_approval = ["memory_store"]\n')
def case_a_call_that_waits_for_a_person_is_decided_in_the_chat(stage):
    def respond(messages, body):
        if messages[-1]["role"] == "tool":
            return f"The tool said: {last_text(messages)}"
        return {"text": "", "calls": [("memory_store", {"key": "k", "value": last_text(messages)})]}

    stage.model.respond = respond
    page = stage.page
    open_agent(stage, rest='[capabilities]\ntools = ["*"]\nmemory_write = ["*"]\n')
    say(page, "first")
    approval = page.get_by_role("region", name="Approval of memory_store")
    expect(approval).to_contain_text("ada wants to remember something")
    expect(approval.get_by_role("definition").last).to_have_text("first")
    access.check(page, "approval")
    stage.shoot("chat-approval")
    approval.get_by_role("button", name="Approve").click()
    settled(page)
    expect(turns(page).last).to_contain_text('The tool said: Stored "k"')
    say(page, "second")
    expect(approval.get_by_role("definition").last).to_have_text("second")
    approval.get_by_role("button", name="Reject").click()
    settled(page, 2)
    expect(turns(page).last.locator("details.tool summary")).to_contain_text("failed")
    agent = re.search(r"#/chat/([^/]+)/", page.url).group(1)
    assert stage.daemon.call("GET", f"/api/memory/agents/{agent}/kv/k")["value"] == "first"


def case_pictures_of_the_agents_own_files_are_shown(stage):
    stage.model.respond = lambda messages, body: "A chart: ![the chart](out/chart.png) and ![gone](nothing.png) and ![far](https://example.com/x.png)"
    page = stage.page
    agent = open_agent(stage)
    put = urllib.request.Request(f"{stage.daemon.url}/api/agents/{agent}/files/out/chart.png", data=PIXEL, method="PUT")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(put).close()
    stage.expect_refusals(404)
    say(page, "draw")
    settled(page)
    body = turns(page).locator(".md")
    until("the picture is shown", lambda: body.locator("img").count() == 1 and body.locator("img").evaluate("(image) => image.naturalWidth") == 16)
    expect(body.get_by_role("button", name="Open the chart")).to_be_visible()
    expect(body).to_contain_text("gone was deleted")
    expect(body.get_by_role("link", name="far")).to_have_attribute("href", "https://example.com/x.png")


def case_pictures_lead_to_files_only(stage):
    """Targets that are no URL, or would lead to another route, break nothing and are not asked for."""
    stage.model.respond = lambda messages, body: (
        "![x](%) ![y](a%zz/b.png) ![up](../../../audit/verify) ![dots](%2e%2e/%2E%2e/.%2e/providers/ollama/detect) ![here](a/%2e/b.png)")
    page = stage.page
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_agent(stage)
    stage.expect_refusals(404)
    say(page, "draw")
    settled(page)
    page.reload()
    body = turns(page).locator(".md")
    expect(body.get_by_text("was deleted")).to_have_count(2)
    expect(body).to_contain_text("![up](../../../audit/verify) ![dots](%2e%2e/%2E%2e/.%2e/providers/ollama/detect) ![here](a/%2e/b.png)")
    assert not [url for url in asked if "verify" in url or "detect" in url], asked
    assert {url.rsplit("/files/", 1)[1] for url in asked if "/files/" in url} == {"%25", "a%25zz/b.png"}, asked
    say(page, "again")
    settled(page, 2)


def case_pictures_of_an_answer_are_bounded_and_asked_for_once(stage):
    gate = Gate()
    names = [f"p{number}.png" for number in range(60)]
    stage.model.respond = lambda messages, body: {"text": [" ".join(f"![]({name})" for name in names), " some", " more", " text"], "gate": gate}
    page = stage.page
    asked = []
    page.on("request", lambda request: "/files/" in request.url and asked.append(request.url.rsplit("/", 1)[1]))
    open_agent(stage)
    stage.expect_refusals(404)
    say(page, "draw")
    for end in ["![](p59.png)", "some", "more", "text"]:
        gate.let()
        expect(turns(page).locator(".md")).to_contain_text(end)
    expect(turns(page).get_by_text("was deleted")).to_have_count(50)
    gate.open()
    settled(page)
    expect(turns(page).get_by_text("was deleted")).to_have_count(50)
    expect(turns(page).locator(".md")).to_contain_text("![](p50.png)")
    # Once while it was written, and once as it is stored.
    assert sorted(asked) == sorted(names[:50] * 2), asked


# Gives the texts that took too long, threw, or are other when they come in pieces.
RENDER = r"""async () => {
  const { LiveMarkdown, pictures, render } = await import(new URL("lib/markdown.js", document.querySelector("script[type=module]").src));
  const wrong = [];
  const show = pictures.show;
  pictures.show = () => { throw new Error("no picture"); };
  const shown = (text) => { const box = document.createElement("div"); box.append(render(text)); return box.textContent; };
  const pieces = ["- ", "1. ", "a", "b c", " ", "  ", "\n", "\n\n", "|", "---", "| --- |", ":-", "> ", "```", "~~~", "`", "# ", "#", "[x](y)", "![p](q)", "![p](%)", "**", "_", "\t", "\ud800"];
  let seed = 1;
  const pick = (most) => { seed = (seed * 48271) % 2147483647; return seed % most; };
  try {
    for (let round = 0; round < 3000; round += 1) {
      const text = Array.from({ length: 1 + pick(14) }, () => pieces[pick(pieces.length)]).join("");
      const live = new LiveMarkdown();
      try {
        for (let end = 0; end <= text.length; end += 1) live.set(text.slice(0, end));
        if (text.includes("![p](") && shown(text) !== text && live.node.textContent === "") wrong.push(text);
        shown(text);
      } catch (error) { wrong.push(`${JSON.stringify(text)}: ${error}`); }
    }
    if (shown("# a\n![x](%)") !== "# a\n![x](%)") wrong.push("not plain");
    const many = 200000;
    for (const text of ["- a\n\n".repeat(many / 4), "- a\n" + "\n".repeat(many) + "- b", "| a |\n" + " ".repeat(many) + "-".repeat(many) + "x",
      "~".repeat(many) + "`", "# " + " ".repeat(many) + "x" + "#".repeat(many) + "y", "- " + " ".repeat(many) + "\u2028"]) {
      const began = performance.now();
      render(text);
      const took = performance.now() - began;
      if (took > 5000) wrong.push(`${JSON.stringify(text.slice(0, 9))}: ${took} ms`);
    }
  } finally {
    pictures.show = show;
  }
  return wrong;
}"""


def case_texts_of_any_form_and_length_are_shown(stage):
    page = stage.open()
    assert page.evaluate(RENDER) == []


def case_the_daemon_goes_and_comes_back(stage):
    page = stage.page
    open_agent(stage)
    say(page, "before")
    settled(page)
    stage.allowed += ["Failed to load resource", "ERR_"]
    stage.daemon.stop()
    say(page, "into the void")
    expect(page.locator(".toast.bad")).to_contain_text("is unreachable")
    expect(page.locator(".health")).to_have_text("offline")
    # What was typed is not lost.
    expect(prompt(page)).to_have_value("into the void")
    stage.shoot("chat-offline")
    stage.daemon.restart()
    expect(page.locator(".health")).to_have_text("online")
    prompt(page).press("Enter")
    settled(page, 2)
    expect(turns(page).last.locator(".md")).to_have_text("echo: into the void")


def case_it_looks_as_it_should(stage):
    def respond(messages, body):
        if messages[-1]["role"] == "tool":
            return ANSWER
        return {"text": "Let me look that up.", "calls": [("memory_store", {"key": "topic", "value": "what is there"}), ("file_read", {"path": "notes.md"})]}

    stage.model.respond = respond
    rest = '[capabilities]\ntools = ["*"]\nmemory_write = ["*"]\n'
    agent = stage.daemon.agent("research-assistant", 'description = "Looks things up and writes summaries"\n' + rest)
    for name in ["ada", "billing-bot", "code reviewer", "inbox triage", "night watch", "release notes", "ops"]:
        stage.daemon.agent(name)
    for label in ["pricing ideas", "weekly report"]:
        stage.daemon.call("POST", f"/api/agents/{agent}/sessions", {"label": label})
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "Please find out what is there, and sum it up in a table."})

    def ready(page):
        settled(page)
        page.wait_for_timeout(200)

    stage.shoot_all("chat", f"#/chat/{agent}", ready)
    empty = stage.daemon.call("GET", "/api/agents")[0]["id"]
    stage.shoot_all("chat-empty", f"#/chat/{empty}", lambda page: expect(page.get_by_text("Start a conversation with")).to_be_visible())


if __name__ == "__main__":
    run(__import__("__main__"))
