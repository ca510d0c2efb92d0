"""A terminal in the browser: a real shell, programs that draw, keys, sizes, and an end."""

import pathlib
import re
import sys

from playwright.sync_api import expect

import access
import stage as stages
from stage import config

ON = "[terminal]\nenabled = true\nshell = \"sh\"\n"


def shown(page):
    """What the screen shows, line by line."""
    return page.locator(".term-lines").inner_text()


def until(page, text):
    expect(page.locator(".term-lines")).to_contain_text(text)


@config("")
def case_off(stage):
    """Without a word in the configuration there is no terminal, and the page says how to have one."""
    page = stage.open("#/settings/terminal")
    expect(page.get_by_role("heading", name="The terminal is off")).to_be_visible()
    expect(page.get_by_role("region", name="Lines of config.toml")).to_have_text("[terminal]\nenabled = true")
    expect(page.get_by_role("link", name="Show terminal.enabled")).to_have_attribute("href", "#/settings/config?q=terminal.enabled")
    access.check(page, "no terminal")
    stage.expect_refusals(404)
    stage.open("#/settings/devices", page)
    expect(page.get_by_role("heading", name="Device pairing is off")).to_be_visible()
    expect(page.get_by_role("link", name="Show pairing.enabled")).to_be_visible()
    access.check(page, "no devices")
    stage.open("#/settings/terminal", page)
    page.get_by_role("button", name="Copy the lines").click()
    expect(page.locator(".toast").filter(has_text="Copied")).to_be_visible()
    reload = page.get_by_role("button", name="Reload config.toml")
    reload.click()
    expect(page.locator(".toast").filter(has_text="config.toml has not changed")).to_be_visible()
    # The lines are all that it takes.
    config = pathlib.Path(stage.daemon.home, "config.toml")
    config.write_text(config.read_text() + "\n" + ON)
    reload.click()
    expect(page.get_by_role("textbox", name="Terminal")).to_be_visible()


@config(ON)
def case_shell(stage):
    """A shell runs, colors and moves of the cursor are drawn, keys are signals, the size follows the window, and the end is said."""
    page = stage.open("#/settings/terminal")
    keys = page.get_by_role("textbox", name="Terminal")
    expect(page.get_by_role("status").filter(has_text=re.compile("^sh"))).to_be_visible()
    keys.press_sequentially("echo a$((40+2))b\n")
    until(page, "a42b")
    keys.press_sequentially("printf '\\033[2J\\033[5;10H\\033[31;1mRED\\033[0m\\033[3;3Hdrawn\\033[8;1H'\n")
    expect(page.locator(".term-lines .term-bold", has_text="RED")).to_be_visible()
    lines = shown(page).split("\n")
    assert lines[2].startswith("  drawn") and lines[4].startswith(" " * 9 + "RED"), lines
    keys.press_sequentially("stty size; sleep 3600; echo after$((1+1))\n")
    until(page, "sleep 3600")
    size = page.evaluate("() => document.querySelectorAll('.term-line').length")
    expect(page.locator(".term-lines")).to_contain_text(re.compile(rf"{size} \d+"))
    keys.press("Control+c")
    keys.press_sequentially("echo é€漢$((1+2))\n")
    until(page, "é€漢3")
    page.set_viewport_size({"width": 900, "height": 600})
    keys.press_sequentially("clear; stty size\n")
    rows = page.evaluate("() => document.querySelectorAll('.term-line').length")
    expect(page.locator(".term-lines")).to_contain_text(re.compile(rf"{rows} \d+"))
    access.check(page, "a terminal")
    stage.shoot("terminal")
    keys.press_sequentially("seq 1 5000\n")
    until(page, "5000")
    keys.press("Control+Shift+e")
    expect(page.get_by_role("button", name="End", exact=True)).to_be_focused()
    keys.press_sequentially("exit 3\n")
    expect(page.get_by_text("The shell has ended with code 3.")).to_be_visible()
    page.get_by_role("button", name="Open another one").click()
    keys.press_sequentially("echo b$((40+2))c\n")
    until(page, "b42c")
    page.evaluate("location.hash = '#/settings/health'")
    expect(page.locator(".term")).to_have_count(0)
    kinds = [entry["event_type"] for entry in stage.daemon.call("GET", "/api/audit/recent")["entries"]]
    assert kinds.count("terminal_started") == 2, kinds


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
