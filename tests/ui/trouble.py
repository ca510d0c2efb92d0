"""Trouble with providers: what the chat says while an answer waits, and what the list of providers shows."""

import re
import sys

from playwright.sync_api import expect

import access
import chat
import settings
import stage as stages
from stage import Gate, config, last_text


def case_the_chat_says_what_an_answer_waits_for(stage):
    """A provider that limits its calls: who, until when, and where to look; the answer comes by itself."""
    limited = []

    def respond(messages, body):
        limited.append(body)
        return {"status": 429, "retry_after": 6} if len(limited) == 1 else "here it is"

    stage.model.respond = respond
    agent = stage.daemon.agent("ada")
    page = stage.open(f"#/chat/{agent}")
    chat.say(page, "hello")
    held = chat.turns(page).last.locator(".held")
    expect(held).to_contain_text("OpenAI limits the rate of requests.")
    expect(held).to_contain_text("Try 2")
    expect(held.get_by_role("link", name="Show the provider")).to_have_attribute("href", "#/settings?filter=openai")
    access.check(page, "an answer that waits for its provider")
    stage.shoot("chat-held")
    chat.settled(page)
    expect(chat.turns(page).last).to_contain_text("here it is")
    expect(held).to_have_count(0)


@config("[queue.concurrency]\nprovider_calls = 1\n")
def case_an_answer_behind_others_says_so(stage):
    gate = Gate()
    stage.model.respond = lambda messages, body: {"text": ["slow"], "gate": gate} if "slow" in last_text(messages) else "quick"
    first, second = stage.daemon.agent("first"), stage.daemon.agent("second")
    page = stage.open(f"#/chat/{first}")
    chat.say(page, "slow")
    stages.until("the first call is out", lambda: stage.model.requests)
    other = stage.open(f"#/chat/{second}", stage.new_page())
    chat.say(other, "now")
    expect(chat.turns(other).last.locator(".held")).to_contain_text("free slot of openai")
    gate.open()
    chat.settled(other)


def case_providers_show_their_trouble(stage):
    """A refused key is a state of the provider, with its error and its time; a call that succeeds ends it."""
    stage.expect_refusals(500, 502)
    agent = stage.daemon.agent("ada")
    stage.model.respond = lambda messages, body: {"status": 401}
    page = stage.open(f"#/chat/{agent}")
    chat.say(page, "hello")
    chat.turns(page).last.get_by_role("link", name="Replace the key").click()
    expect(page.get_by_label("Search providers")).to_have_value("openai")
    card = settings.card(page, "openai")
    expect(card).to_contain_text("failing")
    expect(card).to_contain_text("401")
    expect(card).to_contain_text("Replace the key.")
    expect(card).to_contain_text("Used by 2 agents")
    expect(card.locator("time")).to_be_visible()
    access.check(page, "a provider in trouble")
    stage.shoot("settings-trouble")
    inbox = stage.open("#/inbox", stage.new_page())
    entry = inbox.get_by_role("region", name="Providers").get_by_role("listitem")
    expect(entry).to_contain_text("OpenAI rejects the API key")
    expect(entry.get_by_role("link", name="Replace the key: OpenAI rejects the API key")).to_have_attribute("href", "#/settings?filter=openai")
    # The failed turn stands there, too. Both go when the provider answers again.
    failed = inbox.get_by_role("region", name="Failed turns").get_by_role("listitem")
    expect(failed).to_contain_text("hello")
    expect(failed.get_by_role("link", name="Open chat: hello")).to_have_attribute("href", re.compile(rf"#/chat/{agent}/"))
    access.check(inbox, "an inbox with a provider in trouble")
    stage.shoot("inbox-trouble", inbox)
    stage.model.respond = lambda messages, body: "ok"
    entry.get_by_role("button", name="Test: OpenAI rejects the API key").click()
    expect(entry).to_have_count(0)
    failed.get_by_role("button", name="Retry: hello").click()
    expect(failed).to_have_count(0)
    expect(inbox.get_by_role("heading", name="All clear")).to_be_visible()
    expect(card).to_contain_text("Last response")
    expect(card).not_to_contain_text("401")
    messages = [entry["content"] for entry in stage.daemon.call("GET", f"/api/agents/{agent}/session")["messages"]]
    assert messages.count("hello") == 2 and messages[-1] == "ok", messages


MISSING = '[model]\nprovider = "anthropic"\nmodel = "claude-sonnet-4-5"\n'


def case_a_missing_key_is_said_everywhere(stage):
    """An agent of a provider without a key: the chat, the inbox and the list of providers say so, and lead to where a key is set."""
    stage.expect_refusals(500)
    agent = stage.daemon.agent("broken", MISSING)
    page = stage.open(f"#/chat/{agent}")
    chat.say(page, "hi")
    remark = chat.turns(page).last.locator(".remark.bad")
    expect(remark).to_contain_text("Anthropic has no API key.")
    expect(remark).not_to_contain_text("`")
    expect(remark.get_by_role("link", name="Change the model")).to_have_attribute("href", f"#/agent/{agent}/settings")
    access.check(page, "a chat without a key")
    stage.shoot("chat-no-key")
    inbox = stage.open("#/inbox", stage.new_page())
    entry = inbox.get_by_role("region", name="Providers").get_by_role("listitem").filter(has_text="Anthropic")
    expect(entry).to_contain_text("Anthropic has no API key")
    expect(entry).to_contain_text("1 agent uses it")
    expect(entry.get_by_role("button", name="Test")).to_have_count(0)
    remark.get_by_role("link", name="Add a key").click()
    in_use = page.get_by_role("region", name="In use")
    card = in_use.locator('[data-name="anthropic"]')
    expect(card).to_contain_text("Anthropic has no API key.")
    expect(card).to_contain_text("Used by 1 agent")
    access.check(page, "a provider without a key")
    stage.shoot("settings-no-key")


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
