"""What a person has typed is not lost when another page is opened."""

from chat import open_agent, prompt, say, settled
from stage import expect, run


def question(page):
    return page.get_by_role("dialog", name="Discard the changes?")


def leave_and_stay(page, is_kept):
    """Each way to another page asks first, and staying keeps the page and its address."""
    before = page.url
    for go in [
        lambda: page.get_by_role("link", name="World").click(),
        lambda: page.go_back(),
        lambda: page.evaluate("location.hash = '#/money'"),
    ]:
        go()
        expect(question(page)).to_be_visible()
        question(page).get_by_role("button", name="Cancel").click()
        expect(question(page)).to_have_count(0)
        page.wait_for_url(before)
        is_kept()


def case_changed_settings_are_asked_for(stage):
    agent = stage.daemon.agent("keeper", 'system_prompt = "Be brief."')
    page = stage.open("#/home")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    page.evaluate(f"location.hash = '#/agent/{agent}/settings'")
    box = page.get_by_label("System prompt", exact=True)
    expect(box).to_have_value("Be brief.")
    # Nothing was changed: nobody is asked.
    page.get_by_role("link", name="World").click()
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()
    page.go_back()
    box.fill("Be long.")
    leave_and_stay(page, lambda: expect(box).to_have_value("Be long."))
    # A tab of the page is another page, too, and so is what a shortcut opens.
    page.get_by_role("link", name="Runs", exact=True).click()
    question(page).get_by_role("button", name="Cancel").click()
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("m")
    question(page).get_by_role("button", name="Cancel").click()
    expect(box).to_have_value("Be long.")
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    assert stage.daemon.call("GET", f"/api/agents/{agent}")["system_prompt"] == "Be long."
    # To sign out asks before the session ends.
    page.evaluate("sessionStorage.setItem('agentsvc-api-key', 'none')")
    page.reload()
    box.fill("Be kept.")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Sign out").click()
    question(page).get_by_role("button", name="Cancel").click()
    expect(box).to_have_value("Be kept.")
    assert page.evaluate("sessionStorage.getItem('agentsvc-api-key')") == "none"
    box.fill("Be lost.")
    page.get_by_role("link", name="World").click()
    question(page).get_by_role("button", name="Discard").click()
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()
    page.go_back()
    expect(box).to_have_value("Be long.")


def case_a_changed_workflow_is_asked_for(stage):
    stage.daemon.agent("worker")
    page = stage.open("#/automation/workflows")
    page.get_by_role("button", name="New workflow").first.click()
    name = page.get_by_label("Name", exact=True).first
    name.fill("weekly")
    leave_and_stay(page, lambda: expect(name).to_have_value("weekly"))
    page.get_by_role("button", name="Back", exact=True).click()
    question(page).get_by_role("button", name="Discard").click()
    expect(page.get_by_role("button", name="New workflow").first).to_be_visible()
    page.get_by_role("link", name="World").click()
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()


def case_the_chat_is_opened_where_it_was_left(stage):
    stage.daemon.agent("first")
    agent = open_agent(stage, "second")
    page = stage.page
    say(page, "a message of the second")
    settled(page)
    other = stage.daemon.call("POST", f"/api/agents/{agent}/sessions", {})["session_id"]
    prompt(page).fill("half a mess")
    page.get_by_role("link", name="World").click()
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()
    page.get_by_role("link", name="Chat", exact=True).click()
    expect(page.get_by_role("heading", name="second", level=1)).to_be_visible()
    expect(prompt(page)).to_have_value("half a mess")
    expect(page.get_by_text("a message of the second").first).to_be_visible()
    # Each conversation has its own, and a reload keeps them.
    page.evaluate(f"location.hash = '#/chat/{agent}/{other}'")
    expect(prompt(page)).to_have_value("")
    prompt(page).fill("something else")
    page.go_back()
    expect(prompt(page)).to_have_value("half a mess")
    page.reload()
    expect(prompt(page)).to_have_value("half a mess")
    page.evaluate(f"location.hash = '#/chat/{agent}/{other}'")
    expect(prompt(page)).to_have_value("something else")
    # What was sent is no draft any more.
    say(page, "sent")
    settled(page)
    page.get_by_role("link", name="World").click()
    page.get_by_role("link", name="Chat", exact=True).click()
    expect(page.get_by_role("heading", name="second", level=1)).to_be_visible()
    expect(page.get_by_text("sent", exact=True).first).to_be_visible()
    expect(prompt(page)).to_have_value("")
    # Of an agent that is gone the first of the others is shown.
    stage.daemon.call("DELETE", f"/api/agents/{agent}")
    stage.expect_refusals(404)
    page.evaluate("location.hash = '#/world'")
    page.get_by_role("link", name="Chat", exact=True).click()
    expect(prompt(page)).to_be_enabled()
    expect(page.get_by_role("heading", name="second", level=1)).to_have_count(0)


if __name__ == "__main__":
    import sys

    run(sys.modules[__name__])
