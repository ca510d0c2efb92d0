"""What the page does when something goes wrong: the daemon is killed in the middle of an answer, its key is changed, its world is
exchanged for another. In each case the page says what it is, comes back by itself, and shows what is so then."""

import contextlib
import json
import sys
import threading

from playwright.sync_api import expect

import access
import chat
import stage as stages
from stage import config, until


def health(page):
    return page.locator(".health")


def case_the_daemon_is_killed_in_the_middle_of_an_answer(stage):
    """What came stays on the screen; when the daemon is back, the turn is shown as it is in its store, and the talk goes on."""
    gate = stages.Gate()
    stage.model.respond = lambda messages, body: {"text": ["the first half ", "the second half"], "gate": gate}
    stage.allowed += ["Failed to load resource", "ERR_"]
    page = stage.page
    agent = chat.open_agent(stage)
    chat.say(page, "tell me all")
    gate.let()
    expect(chat.turns(page).locator(".md")).to_have_text("the first half ")
    stage.daemon.stop()
    expect(chat.turns(page)).to_contain_text("The connection was lost")
    expect(chat.turns(page).locator(".md")).to_have_text("the first half ")
    expect(health(page)).to_have_text("offline")
    access.check(page, "an answer that broke off")
    stage.shoot("faults-broken-off")
    gate.open()
    stage.model.respond = lambda messages, body: f"again: {stages.last_text(messages)}"
    stage.daemon.restart()
    expect(health(page)).to_have_text("online")
    # The page reads by itself what became of the turn; nobody reloads it.
    expect(chat.turns(page).filter(has_text="The connection was lost")).to_have_count(0)
    chat.settled(page, 1)
    session = page.url.rsplit("/", 1)[1]
    messages = stage.daemon.call("GET", f"/api/sessions/{session}/messages")["messages"]
    stored = [one["content"] for one in messages if one["role"] == "Assistant"]
    shown = chat.turns(page).first.inner_text()
    assert all(text in shown for text in stored) and "tell me all" in shown, (stored, shown)
    chat.say(page, "are you there")
    chat.settled(page, 2)
    expect(chat.turns(page).last.locator(".md")).to_have_text("again: are you there")
    assert agent in page.url


def case_pages_that_follow_come_back_after_a_restart(stage):
    """The live numbers and the stream of events say that they reconnect, and go on when the daemon is back."""
    stage.allowed += ["Failed to load resource", "ERR_"]
    page = stage.open("#/world/events")
    state = page.locator(".tab-actions").get_by_role("status")
    table = page.get_by_role("table", name="Events, newest first")
    stage.daemon.agent("before")
    expect(table).to_contain_text("agent spawned")
    expect(state).to_have_text("live")
    stage.daemon.stop()
    expect(state).to_have_text("reconnecting")
    stage.shoot("faults-events-reconnecting")
    stage.daemon.restart()
    expect(state).to_have_text("live")
    stage.daemon.call("POST", "/api/events", {"event_type": "after.restart", "payload": {}})
    expect(table).to_contain_text("after.restart")
    stage.open("#/world")
    expect(state).to_have_text("live")
    stage.daemon.stop()
    expect(state).to_have_text("reconnecting")
    stage.daemon.restart()
    expect(state).to_have_text("live")


@config('api_key = "first-key"\n')
def case_a_key_that_was_changed_is_asked_for(stage):
    """In the middle of a talk the key is changed: the page asks for the new one, says why, and what was typed is sent with it."""
    stage.expect_refusals(401)
    stage.allowed += ["ERR_"]
    page = stage.page
    page.add_init_script("if (!sessionStorage.getItem('agentsvc-api-key')) sessionStorage.setItem('agentsvc-api-key', 'first-key');")
    chat.open_agent(stage)
    chat.say(page, "before")
    chat.settled(page)
    chat.prompt(page).fill("half a sentence")
    stage.daemon.configure("first-key", "second-key")
    stage.daemon.key = "second-key"
    stage.daemon.restart()
    login = page.get_by_role("dialog", name="Sign in to agentsvc")
    expect(login).to_be_visible()
    expect(login.get_by_role("alert")).to_contain_text("no longer valid")
    access.check(page, "the key was changed")
    stage.shoot("faults-key-changed")
    login.get_by_label("API key").fill("second-key")
    page.keyboard.press("Enter")
    expect(login).to_have_count(0)
    expect(chat.prompt(page)).to_have_value("half a sentence")
    chat.prompt(page).press("Enter")
    chat.settled(page, 2)
    expect(chat.turns(page).last.locator(".md")).to_have_text("echo: half a sentence")


@contextlib.contextmanager
def restoring(call, snapshot):
    """A restore beside what is looked at: the page may be told of it long before it is answered, and toasts do not stay."""
    restore = threading.Thread(target=call, args=("POST", f"/api/world/snapshots/{snapshot}/restore"))
    restore.start()
    yield
    restore.join()


def case_a_restore_is_waited_for(stage):
    """While the world is exchanged the page says so and waits; afterwards it shows the world that came of it."""
    stage.expect_refusals(503)
    call = stage.daemon.call
    page = stage.page
    agent = chat.open_agent(stage)
    chat.say(page, "kept")
    chat.settled(page)
    snapshot = call("POST", "/api/world/snapshots", {"label": "early"})["id"]
    chat.say(page, "forgotten")
    chat.settled(page, 2)
    later = call("POST", f"/api/agents/{agent}/sessions", {"label": "made later"})["session_id"]
    # For a while every call is answered as the daemon answers in the moments of an exchange.
    held = {"on": True}
    refusal = {"error": "a restore is in progress; try again in a moment", "code": "exchanging"}

    def exchanging(route):
        if not held["on"]:
            return route.continue_()
        return route.fulfill(status=503, headers={"content-type": "application/json", "retry-after": "1"}, body=json.dumps(refusal))

    page.route("**/api/**", exchanging)
    chat.say(page, "into the exchange")
    expect(health(page)).to_have_text("restoring")
    access.check(page, "an exchange")
    stage.shoot("faults-restoring")
    held["on"] = False
    chat.settled(page, 3)
    expect(chat.turns(page).last.locator(".md")).to_have_text("echo: into the exchange")
    expect(health(page)).to_have_text("online")
    page.unroute("**/api/**")
    # The world itself goes back: the open session is shown as it was then.
    with restoring(call, snapshot):
        expect(page.locator(".toast").filter(has_text="The world was restored")).to_be_visible()
    expect(chat.turns(page)).to_have_count(1)
    expect(chat.turns(page)).to_contain_text("echo: kept")
    chat.say(page, "hello again")
    chat.settled(page, 2)
    # A session that the restored world never had is left for the present one.
    stage.expect_refusals(404)
    stage.open(f"#/chat/{agent}/{later}")
    expect(page.locator(".toast.bad").filter(has_text="no longer exists")).to_be_visible()
    expect(chat.turns(page).first).to_contain_text("echo: kept")


def case_a_session_that_goes_with_a_restore_is_left(stage):
    """The session that is open was made after the snapshot: after the restore the page shows the one that came of it."""
    stage.expect_refusals(503, 404)
    call = stage.daemon.call
    page = stage.page
    agent = chat.open_agent(stage)
    chat.say(page, "kept")
    chat.settled(page)
    snapshot = call("POST", "/api/world/snapshots", {"label": "early"})["id"]
    session = call("POST", f"/api/agents/{agent}/sessions", {"label": "made later"})["session_id"]
    stage.open(f"#/chat/{agent}/{session}")
    expect(page.get_by_text("Start a conversation with ada")).to_be_visible()
    with restoring(call, snapshot):
        expect(page.locator(".toast").filter(has_text="That session no longer exists")).to_be_visible()
    expect(chat.turns(page)).to_contain_text("echo: kept")
    until("the address is that of the session", lambda: session not in page.url)


def case_old_numbers_are_called_old(stage):
    """A page that cannot be read anew keeps what it shows and says since when and why; and no more once it can."""
    stage.expect_refusals(500)
    page = stage.open("#/money/approvals")
    expect(page.get_by_role("heading", name="No pending approvals")).to_be_visible()
    note = page.locator(".tab-note")
    expect(note).to_have_text("")
    answer = {"status": 500, "headers": {"content-type": "application/json"}, "body": json.dumps({"error": "it broke"})}
    page.route("**/api/approvals?*", lambda route: route.fulfill(**answer))
    expect(note).to_contain_text("Not updated since")
    expect(note).to_contain_text("it broke")
    expect(page.get_by_role("heading", name="No pending approvals")).to_be_visible()
    access.check(page, "a page that is not read")
    page.unroute("**/api/approvals?*")
    expect(note).to_have_text("")


def case_a_page_that_was_left_changes_no_address(stage):
    """The chat is left while it is being built: it does not come back with the address of an agent when that is done."""
    page = stage.page
    stage.daemon.agent("first")
    held = []
    page.route("**/api/media/providers", lambda route: held.append(route))
    stage.open("#/chat")
    until("the chat is being built", lambda: page.evaluate("() => true") and held)
    expect(page.get_by_text("first").first).to_be_visible()
    stage.open("#/settings/health")
    expect(page.get_by_role("heading", name="Health", level=1)).to_be_visible()
    with page.expect_response("**/api/media/providers"):
        held[0].continue_()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.url.endswith("#/settings/health"), page.url
    expect(page.get_by_role("heading", name="Health", level=1)).to_be_visible()


def case_a_toast_over_a_dialog_is_dismissed(stage):
    """What is said while a dialog is open is dismissed there; what is left when it closes stands on the page."""
    page = stage.open("#/automation/tasks")
    page.get_by_role("button", name="New task").first.click()
    say = """async (text) => {
      const at = document.querySelector("script[type=module]").src.replace("app.js", "lib/dialogs.js");
      (await import(at)).toast(text, { kind: "bad" });
    }"""
    bad = page.locator(".toast.bad")
    page.evaluate(say, "The first")
    bad.get_by_role("button", name="Dismiss").click()
    expect(bad).to_have_count(0)
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate(say, "The second")
    access.check(page, "a toast over a dialog")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(bad).to_contain_text("The second")
    bad.get_by_role("button", name="Dismiss").click()
    expect(bad).to_have_count(0)


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
