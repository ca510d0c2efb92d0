"""Versions of system prompts and experiments in the browser: they are saved, compared, activated and ended."""

import sys

from playwright.sync_api import expect

import access
import stage as stages
from connections import MARKUP, dialog
from library import cards
from stage import config

ENABLED = "[prompt_intelligence]\nenabled = true\n"


def choose(page, card, item):
    card.get_by_role("button", name="More for").click()
    page.get_by_role("menuitem", name=item).click()


@config(ENABLED)
def case_versions_and_experiments(stage):
    """A version is saved, read, compared and activated; an experiment is created, runs, and ends with its figures."""
    agent = stage.daemon.agent("scout", 'system_prompt = "Be kind."\n')
    page = stage.open("#/library/prompts")
    expect(page.get_by_role("heading", name="Choose an agent")).to_be_visible()
    access.check(page, "prompts without an agent")
    page.get_by_label("Agent").fill("scout")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("No versions yet.")).to_be_visible()
    for text, about in [("Be kind.", ""), ("Be kind.\nBe brief.", f"brief {MARKUP}")]:
        page.get_by_role("button", name="Save a version").click()
        dialog(page).get_by_label("System prompt").fill(text)
        dialog(page).get_by_label("Description").fill(about)
        access.check(page, "the form of a version")
        dialog(page).get_by_role("button", name="Save", exact=True).click()
        expect(dialog(page)).to_have_count(0)
    versions = cards(page, "Versions")
    expect(versions).to_have_count(2)
    expect(versions.first).to_contain_text(MARKUP)
    assert page.locator(".page-library img").count() == 0 and page.title() != "obeyed"
    choose(page, versions.first, "Show what changed")
    expect(dialog(page)).to_contain_text("Compared with version 1")
    expect(dialog(page)).to_contain_text("+Be brief.")
    access.check(page, "the changes of a version")
    dialog(page).locator("footer").get_by_role("button", name="Close").click()
    choose(page, versions.first, "Activate")
    dialog(page).get_by_role("button", name="Activate", exact=True).click()
    expect(versions.first).to_contain_text("active")
    assert stage.daemon.call("GET", f"/api/agents/{agent}")["system_prompt"] == "Be kind.\nBe brief."
    page.get_by_role("button", name="Compare", exact=True).click()
    stage.expect_refusals(400)
    dialog(page).get_by_role("button", name="Create", exact=True).click()
    expect(dialog(page).get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    dialog(page).get_by_label("Name").fill("tone")
    access.check(page, "the form of an experiment")
    dialog(page).get_by_role("button", name="Create", exact=True).click()
    experiments = cards(page, "Experiments")
    expect(experiments).to_contain_text("draft")
    choose(page, experiments.first, "Start")
    expect(experiments).to_contain_text("running")
    stage.daemon.call("POST", f"/api/agents/{agent}/message", {"message": "hello"})
    stage.open("#/library/skills", page)
    stage.open(f"#/library/prompts/{agent}", page)
    figures = page.get_by_role("region", name="Figures of tone")
    expect(figures).to_contain_text("1 (100 %)")
    expect(figures).to_contain_text("too few turns")
    access.check(page, "versions and experiments")
    stage.shoot("prompts")
    choose(page, experiments.first, "Complete")
    dialog(page).get_by_label("Winner", exact=True).select_option(label="A")
    dialog(page).get_by_role("button", name="Complete", exact=True).click()
    expect(experiments).to_contain_text("winner")
    choose(page, experiments.first, "Delete")
    dialog(page).get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No experiments yet.")).to_be_visible()
    choose(page, versions.nth(1), "Delete")
    dialog(page).get_by_role("button", name="Delete", exact=True).click()
    expect(versions).to_have_count(1)


def case_disabled(stage):
    """Where it is disabled, the page says how to enable it."""
    agent = stage.daemon.agent("scout")
    stage.expect_refusals(404)
    page = stage.open(f"#/library/prompts/{agent}")
    expect(page.get_by_role("heading", name="Prompt versions are disabled")).to_be_visible()
    expect(page.get_by_role("link", name="Open the configuration")).to_be_visible()
    access.check(page, "prompts that are disabled")


if __name__ == "__main__":
    stages.run(sys.modules[__name__])
