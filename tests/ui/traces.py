"""Traces: what was sent to the model, which step failed and why, where time and money went, and a run compared with another."""

import sys

from playwright.sync_api import expect

import access
import chat
import stage as stages
from agent import MANIFEST, calls_the_time


def open_trace(stage, agent):
    """Opens the trace of the newest run of `agent`; gives the buttons of its steps, and the region of the selected one."""
    trace = stage.daemon.call("GET", f"/api/agents/{agent}/traces")["traces"][0]
    page = stage.open(f"#/agent/{agent}/runs/{trace['turn_id']}?session={trace['session_id']}")
    return page.get_by_role("list", name="Steps of the run").get_by_role("button"), page.get_by_role("region", name="Selected step")


def case_the_prompt_is_shown_as_it_was_sent(stage):
    """System text, messages and tools of each model call, with their tokens; what is new since the call before is marked."""
    stage.model.respond = calls_the_time
    agent = stage.daemon.agent("ledger", MANIFEST)
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "what time is it?"})
    steps, detail = open_trace(stage, agent)
    page = stage.page
    expect(detail.locator(".sent-part", has_text="System prompt").first).to_contain_text("You keep the ledger.")
    expect(detail.locator(".parts-legend").first).to_contain_text("Tools")
    steps.filter(has_text="Model call 2").click()
    expect(detail.locator(".md strong")).to_have_text("noon")
    detail.get_by_role("button", name="Prompt as sent").click()
    parts = detail.locator(".sent-list > .sent-part")
    expect(parts.filter(has_text="Result of system_time")).to_contain_text("new")
    expect(parts.filter(has_text="what time is it?")).not_to_contain_text("new")
    tools = parts.last
    tools.locator("summary").first.click()
    expect(tools.locator(".sent-part").filter(has_text="system_time").first).to_be_visible()
    sent = [message["role"] for message in stage.model.requests[-1]["messages"]]
    assert sent == ["system", "user", "assistant", "tool"], sent
    access.check(page, "a prompt as sent")
    stage.shoot("trace-prompt")
    expect(page.get_by_role("region", name="Context window").locator(".parts-legend")).to_contain_text("Tool results")
    # Only the daemon that sent them has them.
    stage.daemon.restart()
    page.reload()
    expect(detail).to_contain_text("no longer kept")
    expect(detail).to_contain_text("what time is it?")


def case_a_failed_step_is_named_with_its_error(stage):
    """The model that failed, why, after how many tries, and where to mend it."""
    stage.expect_refusals(502, 500)
    agent = stage.daemon.agent("ledger", MANIFEST)
    stage.model.respond = lambda messages, body: {"status": 401}
    page = stage.open(f"#/chat/{agent}")
    chat.say(page, "hello")
    expect(chat.turns(page).last.locator(".remark.bad")).to_contain_text("401")
    expect(chat.turns(page).last.get_by_role("link", name="Replace the key")).to_have_attribute("href", "#/settings?filter=openai")
    steps, detail = open_trace(stage, agent)
    expect(steps.last).to_contain_text("Model call 1")
    expect(steps.last).to_contain_text("openai/echo-1")
    expect(steps.last).to_contain_text("401")
    expect(steps.last).to_have_attribute("aria-pressed", "true")
    expect(detail.get_by_role("link", name="Replace the key")).to_be_visible()
    expect(detail).to_contain_text("hello")
    expect(page.get_by_role("list", name="What stands out")).to_contain_text("Model call 1 failed")
    access.check(page, "the trace of a failed run")
    stage.shoot("trace-failed")


def case_tries_and_failed_tools_stand_out(stage):
    """A call that was repeated says how often and why; a tool that failed leads to its error."""
    seen = []

    def respond(messages, body):
        seen.append(body)
        if len(seen) == 1:
            return {"status": 503}
        return "Done." if messages[-1]["role"] == "tool" else {"calls": [("file_read", {"path": "missing.md"})]}

    stage.model.respond = respond
    agent = stage.daemon.agent("ledger", MANIFEST)
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "read it"})
    steps, detail = open_trace(stage, agent)
    page = stage.page
    found = page.get_by_role("list", name="What stands out").get_by_role("listitem")
    expect(found.filter(has_text="Model call 1 needed 2 tries")).to_be_visible()
    failed = found.filter(has_text="file_read failed")
    failed.get_by_role("button", name="Show file_read").click()
    expect(detail.get_by_role("heading", name="file_read")).to_be_visible()
    expect(detail).to_contain_text("missing.md")
    found.filter(has_text="needed 2 tries").get_by_role("button").click()
    expect(detail.locator(".tries li")).to_have_count(2)
    expect(detail.locator(".tries li").first).to_contain_text("503")
    expect(page.get_by_role("region", name="Where the time went")).to_contain_text("Waiting")
    page.keyboard.press("ArrowDown")
    expect(steps.filter(has_text="file_read").last).to_be_focused()
    access.check(page, "what stands out in a trace")
    stage.shoot("trace-findings")


def case_a_run_is_edited_and_compared(stage):
    """The message in other words, run again; both answers stand side by side."""
    agent = stage.daemon.agent("ledger", MANIFEST)
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "first words"})
    open_trace(stage, agent)
    page = stage.page
    page.get_by_role("button", name="More ways to run").click()
    page.get_by_role("menuitem", name="Edit the message and run").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Message")).to_have_value("first words")
    dialog.get_by_label("Message").fill("other words")
    dialog.get_by_role("button", name="Run").click()
    compared = page.get_by_role("region", name="Comparison")
    expect(compared).to_contain_text("echo: first words")
    expect(compared).to_contain_text("echo: other words")
    access.check(page, "two runs compared")


def case_pictures(stage):
    stage.model.respond = lambda messages, body: "It is **noon**." if messages[-1]["role"] == "tool" else {"calls": [("system_time", {}), ("file_read", {"path": "missing.md"})]}
    agent = stage.daemon.agent("ledger", MANIFEST)
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "What time is it, and what does the note say?"})
    trace = stage.daemon.call("GET", f"/api/agents/{agent}/traces")["traces"][0]

    def prompt(page):
        page.get_by_role("list", name="Steps of the run").get_by_role("button", name="Model call 2").click()
        page.get_by_role("button", name="Prompt as sent").click()
        expect(page.locator(".sent-part").first).to_be_visible()

    stage.shoot_all("trace", f"#/agent/{agent}/runs/{trace['turn_id']}?session={trace['session_id']}", prompt)


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
