"""A walk through the page with the keyboard alone: nothing is clicked, and what has the focus is always known and seen."""

import re
import sys

from playwright.sync_api import expect

import access
import chat
import stage as stages


def tab_to(page, name, key="Tab", steps=40):
    """Goes on with Tab to what is called `name`; each step has a name and a ring, or a mark of its own."""
    reached = []
    for _ in range(steps):
        [found] = access.tab_order(page, 1, key)
        reached.append(found)
        if re.search(name, found):
            return
        assert found, f"something without a name has the focus, after {reached}"
    raise AssertionError(f"Tab does not reach {name}: {reached}")


def ring(page):
    """Is it seen what has the focus? An outline of its own, or of the box around it."""
    return page.evaluate("""() => {
      const shows = (node) => { const style = getComputedStyle(node); return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1) || style.boxShadow !== "none"; };
      for (let at = document.activeElement, up = 0; at && up < 4; at = at.parentElement, up += 1) if (shows(at)) return true;
      return [...document.querySelectorAll(".row.active")].some(shows);
    }""")


def case_a_walk(stage):
    """An agent is made, talks, is stopped; sessions are changed, commands completed, pages and menus opened."""
    gate = stages.Gate()
    stage.model.respond = lambda messages, body: {"text": ["begun ", "never"], "gate": gate} if "long" in stages.last_text(messages) else f"echo: {stages.last_text(messages)}"
    page = stage.open()
    keys = page.keyboard
    expect(chat.prompt(page)).to_be_focused()

    # An agent: from the head of the page to the button, the type, the name, and Enter.
    tab_to(page, "^Search agents$", "Shift+Tab")
    tab_to(page, "New agent", "Shift+Tab", 3)
    assert ring(page), "the button shows no focus"
    keys.press("Enter")
    dialog = page.get_by_role("dialog", name="New agent")
    name = dialog.get_by_label("Name", exact=True)
    expect(name).to_be_focused()
    keys.press("Control+a")
    keys.type("by-keys")
    expect(dialog.get_by_role("status")).to_contain_text("Valid. ")
    keys.press("Enter")
    expect(page.get_by_role("heading", name="by-keys", level=1)).to_be_visible()
    expect(chat.prompt(page)).to_be_focused()
    assert ring(page), "the message box shows no focus"

    # A talk, and one that is stopped.
    keys.type("hello")
    keys.press("Enter")
    chat.settled(page)
    expect(chat.prompt(page)).to_be_focused()
    keys.type("a long story")
    keys.press("Enter")
    gate.let()
    expect(chat.turns(page).last.locator(".md")).to_have_text("begun ")
    keys.press("Escape")
    chat.settled(page, 2)
    expect(chat.turns(page).last).to_contain_text("Stopped.")

    # A command: completed by Tab, and by the arrows.
    keys.type("/ne")
    expect(page.get_by_role("listbox", name="Commands").get_by_role("option").first).to_have_attribute("aria-selected", "true")
    keys.press("Tab")
    expect(chat.prompt(page)).to_have_value(re.compile("^/new"))
    keys.type("second" if chat.prompt(page).input_value().endswith(" ") else " second")
    keys.press("Enter")
    expect(page.locator(".chat-head .note")).to_contain_text("#second")
    expect(chat.prompt(page)).to_be_focused()
    keys.type("/")
    options = page.get_by_role("listbox", name="Commands").get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    keys.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    keys.press("Escape")
    expect(page.get_by_role("listbox", name="Commands")).to_be_hidden()
    chat.prompt(page).press("Control+a")
    keys.press("Delete")

    # The other session: by the list of sessions.
    tab_to(page, "^Sessions$", "Shift+Tab")
    sessions = page.get_by_role("listbox", name="Sessions")
    expect(sessions).to_be_focused()
    expect(sessions.get_by_role("option")).to_have_count(2)
    keys.press("End")
    assert ring(page), "the row shows no focus"
    keys.press("Enter")
    expect(chat.turns(page)).to_have_count(2)
    expect(page.locator(".chat-head .note")).not_to_contain_text("#second")

    # A menu: opened, walked, closed; the focus goes back to its button.
    tab_to(page, "^More$")
    keys.press("Enter")
    menu = page.get_by_role("menu", name="More").last
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    keys.press("ArrowDown")
    expect(menu.get_by_role("menuitem").nth(1)).to_be_focused()
    keys.press("Escape")
    expect(menu).to_be_hidden()
    expect(page.locator(".chat-head").get_by_role("button", name="More")).to_be_focused()

    # The other pages and their parts; a dialog gives the focus back.
    for key, heading in [("w", "Live"), ("a", "Schedules"), ("m", "Spending"), ("s", "Providers")]:
        keys.press("g")
        keys.press(key)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    keys.press("g")
    keys.press("a")
    expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()
    page.locator("main").focus()
    tab_to(page, "^New schedule$", steps=4)
    keys.press("Enter")
    expect(page.get_by_role("dialog", name="New schedule")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="New schedule").first).to_be_focused()
    tab_to(page, "^Tasks$", steps=12)
    assert ring(page), "the tab shows no focus"
    keys.press("Enter")
    expect(page.get_by_role("heading", name="The queue is empty")).to_be_visible()
    keys.press("n")
    expect(page.get_by_role("dialog", name="New task").get_by_label("Title")).to_be_focused()
    keys.type("By hand")
    keys.press("Enter")
    expect(page.get_by_role("region", name="Pending")).to_contain_text("By hand")


def case_a_list_that_grows(stage):
    """An agent comes into the list by another hand: the arrows go on from where they were."""
    for name in ("anna", "berta", "carla"):
        stage.daemon.agent(name)
    page = stage.open()
    expect(chat.prompt(page)).to_be_focused()
    agents = page.get_by_role("listbox", name="Agents")
    expect(agents.get_by_role("option")).to_have_count(4)
    agents.focus()
    for key in ("Home", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    active = agents.locator(".row.active")
    name = active.locator(".name").inner_text()
    stage.daemon.agent("dora")
    expect(agents.get_by_role("option")).to_have_count(5)
    expect(active.locator(".name")).to_have_text(name)
    assert agents.get_attribute("aria-activedescendant") == active.get_attribute("id")
    expect(agents).to_be_focused()


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
