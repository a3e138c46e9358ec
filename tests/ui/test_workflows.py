"""Workflows: the list, one with its graph, its versions and its runs, and the editor."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, expect
from tests.ui.browser import check_appearance, watched_page
from tests.ui.conftest import DemoSystem
from tests.ui.wheel_install import trunkline_up

from trunkline.jsontypes import decode

LETTER = """\
# For the readers.
name: {name}
description: A letter for those who have asked for it.
input:
  type: object
  required: [topic]
  properties:
    topic: {{type: string}}
steps:
  research:
    agent: Researcher
    input: {{text: "What is new about ${{ input.topic }}?"}}
    on_error: {{goto: apologize}}
  write:
    agent: Writer
    needs: [research]
  apologize:
    agent: Writer
"""


def letter(demo: DemoSystem, name: str) -> str:
    """A workflow of the test's own; its text."""
    text = LETTER.format(name=name)
    demo.client.save_workflow(text.encode())
    return text


CARET_IS_IN_SIGHT = """() => {
    const caret = document.querySelector(".cm-cursor-primary").getBoundingClientRect();
    const frame = document.querySelector("[data-testid=editor]").getBoundingClientRect();
    return caret.top >= frame.top && caret.bottom <= frame.bottom;
}"""


def text_of(page: Page) -> Locator:
    return page.get_by_test_id("editor").get_by_role("textbox")


def step(page: Page, name: str) -> Locator:
    return page.get_by_test_id(f"graph-step-{name}")


def paste(page: Page, text: str) -> None:
    """In place of all that is written."""
    page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    text_of(page).press("ControlOrMeta+a")
    text_of(page).press("ControlOrMeta+v")


def write_at_the_end(page: Page, text: str) -> None:
    text_of(page).click()
    page.keyboard.press("ControlOrMeta+End")
    page.keyboard.type(text)


# --- seeing


def test_the_list_says_what_each_is_made_of_and_how_its_last_runs_ended(page: Page, demo: DemoSystem) -> None:
    letter(demo, "list")
    page.goto("/workflows")
    row = page.locator("[data-testid=workflow][data-workflow=demo]")
    expect(row).to_contain_text("v1")
    expect(row.get_by_role("link", name="Researcher")).to_be_visible()
    mark = row.get_by_test_id("run-mark")
    expect(mark).to_have_attribute("data-status", "COMPLETED")
    expect(mark).to_have_attribute("aria-label", re.compile("^Run: Completed"))
    expect(page.locator("[data-testid=workflow][data-workflow=list]")).to_contain_text("No runs yet")
    check_appearance(page, "workflows")
    mark.click()
    expect(page).to_have_url(f"{demo.url}/runs/{demo.run}")


def test_a_search_is_part_of_the_address(page: Page, demo: DemoSystem) -> None:
    letter(demo, "Search for 100%")
    page.goto("/workflows")
    expect(page.locator("[data-workflow=demo]")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("100%")
    expect(page.get_by_test_id("workflow")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?q="))
    page.reload()
    expect(page.get_by_test_id("workflow")).to_have_count(1)
    page.get_by_test_id("search").fill("nowhere")
    expect(page.get_by_test_id("no-workflows")).to_contain_text("nowhere")
    page.get_by_role("link", name="Clear search").click()
    expect(page.get_by_test_id("search")).to_have_value("")
    expect(page.locator("[data-workflow=demo]")).to_be_visible()


def test_where_there_is_none_the_next_command_is_shown(
    browser: Browser, session_folder: Path, tmp_path: Path
) -> None:
    with trunkline_up(session_folder, tmp_path) as url, watched_page(browser, url) as page:
        page.goto("/workflows")
        expect(page.get_by_test_id("no-workflows")).to_contain_text("trunkline workflows apply")
        check_appearance(page, "workflows-none")


def test_a_step_is_selected_in_the_graph_and_in_the_text_alike(page: Page, demo: DemoSystem) -> None:
    letter(demo, "selection")
    page.goto("/workflows/selection")
    marked = page.locator("[data-marked]")
    step(page, "write").click()
    expect(page).to_have_url(re.compile(r"\?step=write$"))
    expect(marked).to_have_count(3)
    expect(marked.first).to_have_text("  write:")
    page.get_by_test_id("code").get_by_text("apologize", exact=False).last.click()
    expect(page).to_have_url(re.compile(r"\?step=apologize$"))
    expect(marked.first).to_have_text("  apologize:")
    expect(step(page, "apologize")).to_have_attribute("data-selected", "true")
    check_appearance(page, "workflow")


def test_the_last_runs_lead_to_all_of_them(page: Page, demo: DemoSystem) -> None:
    page.goto("/workflows/demo")
    run = page.get_by_test_id("last-run")
    expect(run).to_contain_text("Completed")
    expect(run.get_by_role("link", name=demo.run)).to_be_visible()
    page.get_by_test_id("all-runs").click()
    expect(page).to_have_url(f"{demo.url}/runs?workflow=demo")


def test_what_changed_between_two_versions_is_shown(page: Page, demo: DemoSystem) -> None:
    text = letter(demo, "versions")
    demo.client.save_workflow(text.replace("agent: Writer", "agent: FactChecker", 1).encode())
    demo.client.save_workflow(f"{text}deadline: 5m\n".encode())
    page.goto("/workflows/versions")
    page.get_by_test_id("tab-versions").click()
    expect(page.get_by_test_id("version-row")).to_have_count(3)
    diff = page.get_by_test_id("diff")
    expect(diff.locator(".cm-merge-a .cm-changedText")).to_contain_text(["FactChecker"])
    expect(diff.locator(".cm-merge-b")).to_contain_text("deadline: 5m")
    check_appearance(page, "versions")
    page.get_by_test_id("against").click()
    page.get_by_role("option", name="v1").click()
    expect(page).to_have_url(re.compile(r"against=1"))
    expect(diff.locator(".cm-merge-a .cm-changedText")).to_have_count(0)
    page.get_by_test_id("version-row").get_by_role("link", name="v2").click()
    page.get_by_test_id("tab-definition").click()
    expect(page.get_by_text("v3 is the latest")).to_be_visible()
    expect(page.get_by_test_id("code")).to_contain_text("FactChecker")


def test_a_definition_that_was_saved_as_json_is_shown_and_edited_as_yaml(
    page: Page, demo: DemoSystem
) -> None:
    text = '{"name":"as-json","deadline":"5m","steps":{"write":{"agent":"Writer","input":{"n":1.0,"of":[]}}}}'
    demo.client.save_workflow(text.encode())
    yaml = demo.client.workflow("as-json", 1)["yaml"]
    demo.client.save_workflow(str(yaml).replace("5m", "6m").encode())
    page.goto("/workflows/as-json?version=1&step=write")
    lines = page.get_by_test_id("code").locator(".cm-line")
    expect(lines.filter(has_text="n: 1.0")).to_have_text("      n: 1.0")
    expect(page.locator("[data-marked]").first).to_have_text("  write:")
    check_appearance(page, "workflow-from-json")
    page.goto("/workflows/as-json?tab=versions")
    diff = page.get_by_test_id("diff")
    expect(diff.locator(".cm-merge-a .cm-changedLine")).to_have_text("deadline: 5m")
    expect(diff.locator(".cm-merge-b .cm-changedLine")).to_have_text("deadline: 6m")
    assert demo.client.workflow("as-json", 1)["source"] == text


def test_saving_what_came_as_json_again_changes_nothing(page: Page, demo: DemoSystem) -> None:
    text = (
        '{"name":"json-again","steps":{"write":{"agent":"Writer","input":{"n":1.0,"of":[{"a b":"x: y"}]}}}}'
    )
    demo.client.save_workflow(text.encode())
    page.goto("/workflows/json-again/edit")
    expect(text_of(page).locator(".cm-line").first).to_have_text("name: json-again")
    expect(page.get_by_test_id("valid")).to_be_visible()
    write_at_the_end(page, "# Read, and found good.")
    page.get_by_test_id("save").click()
    expect(page.get_by_text("No changes since version 1.")).to_be_visible()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_call_that_is_copied_starts_a_run(page: Page, demo: DemoSystem) -> None:
    page.goto("/workflows/demo")
    expect(step(page, "research")).to_be_visible()
    page.get_by_test_id("execute-call").click()
    check_appearance(page, "execute-call")
    page.get_by_test_id("copy-execute-call").click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    call = str(page.evaluate("navigator.clipboard.readText()"))
    done = subprocess.run(["sh", "-c", f"{call} --silent"], capture_output=True, check=True)
    run = decode(done.stdout)
    assert isinstance(run, dict)
    assert demo.client.run(str(run["id"]))["workflow"] == {"name": "demo", "version": 1}


def test_a_workflow_that_does_not_exist_says_what_to_do(page: Page) -> None:
    for address in ("/workflows/nobody", "/workflows/nobody/edit", "/workflows/demo?version=99"):
        page.goto(address)
        expect(page.get_by_test_id("problem")).to_contain_text("trunkline workflows list")
    check_appearance(page, "workflow-missing")


# --- writing


def test_what_is_wrong_is_shown_where_it_is_as_one_writes(page: Page, demo: DemoSystem) -> None:
    letter(demo, "findings")
    page.goto("/workflows/findings/edit")
    expect(page.get_by_test_id("valid")).to_be_visible()
    # More lines than there is room for: the findings take some of it.
    write_at_the_end(page, "# A line.\n" * 40)
    page.keyboard.type("    nedes: [research]\n")
    error = page.get_by_test_id("error")
    expect(error).to_contain_text("did you mean 'needs'?")
    page.wait_for_function(CARET_IS_IN_SIGHT)
    expect(page.locator(".cm-lintRange-error")).to_have_text("nedes")
    expect(page.get_by_test_id("graph-state")).to_contain_text("the last valid text")
    check_appearance(page, "editor-error")
    error.click()
    expect(text_of(page)).to_be_focused()
    for _ in "nedes":
        page.keyboard.press("Delete")
    page.keyboard.type("needs")
    expect(page.get_by_test_id("valid")).to_be_visible()


def test_the_graph_follows_what_is_written_and_saving_makes_a_version(page: Page, demo: DemoSystem) -> None:
    text = letter(demo, "saving")
    page.goto("/workflows/saving/edit")
    expect(step(page, "apologize")).to_be_visible()
    paste(page, f"{text}  send:\n    agent: Nobody\n    needs: [write]\n")
    text_of(page).press("ControlOrMeta+End")
    text_of(page).press("ArrowUp")
    expect(step(page, "send")).to_be_visible()
    expect(page.get_by_test_id("warning")).to_contain_text("'Nobody' is not registered")
    expect(step(page, "send")).to_have_attribute("data-selected", "true")
    check_appearance(page, "editor")
    page.keyboard.press("ControlOrMeta+s")
    expect(page.get_by_text("Saved as version 2 of saving.")).to_be_visible()
    expect(page).to_have_url(f"{demo.url}/workflows/saving")
    expect(step(page, "send")).to_be_visible()
    assert "agent: Nobody" in str(demo.client.workflow("saving", 2)["source"])


def test_completion_knows_the_language_the_agents_and_the_steps(page: Page, demo: DemoSystem) -> None:
    letter(demo, "completion")
    page.goto("/workflows/completion/edit")
    expect(page.get_by_test_id("valid")).to_be_visible()
    text_of(page).get_by_text("on_error").hover()
    expect(page.get_by_text("What happens when the step fails after its retries")).to_be_visible()
    options = page.get_by_role("option")
    write_at_the_end(page, "    nee")
    expect(options.first).to_have_text("needs")
    options.first.click()
    page.keyboard.type("[res")
    options.filter(has_text="research").click()
    expect(text_of(page)).to_contain_text("needs: [research]")
    page.keyboard.press("End")
    page.keyboard.type("\nwhen: steps.wri")
    options.filter(has_text="write").click()
    page.keyboard.type(".")
    expect(options.filter(has_text="output.text")).to_be_visible()
    page.keyboard.type("status == 'COMPLETED'\nretry: {back")
    options.filter(has_text="backoff").click()
    options.filter(has_text="linear").click()
    expect(text_of(page)).to_contain_text("retry: {backoff: linear}")
    expect(page.get_by_test_id("valid")).to_be_visible()
    check_appearance(page, "editor-completion")


def test_a_letter_in_place_of_all_that_is_written_can_be_undone(page: Page, demo: DemoSystem) -> None:
    letter(demo, "replaced")
    page.goto("/workflows/replaced/edit")
    expect(page.get_by_test_id("valid")).to_be_visible()
    # What the browser itself writes over styled text, it may give a style of its own, which the policy refuses.
    text_of(page).evaluate(
        "(element) => element.addEventListener('input', () => { element.dataset.writtenBy = 'browser'; })"
    )
    text_of(page).click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("n")
    expect(text_of(page)).to_have_text("n")
    expect(text_of(page)).not_to_have_attribute("data-written-by", "browser")
    expect(page.get_by_role("option").first).to_contain_text("name")
    page.keyboard.press("Escape")
    page.keyboard.press("ControlOrMeta+z")
    expect(text_of(page)).to_contain_text("For the readers.")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("[")
    expect(text_of(page)).to_contain_text("[# For the readers.")
    page.goto("/workflows/replaced")
    page.get_by_test_id("code").get_by_text("apologize", exact=False).last.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("n")
    expect(page.get_by_test_id("code")).to_contain_text("For the readers.")


def test_what_is_not_valid_is_not_saved_and_one_is_led_to_what_is_wrong(page: Page, demo: DemoSystem) -> None:
    letter(demo, "refused")
    page.goto("/workflows/refused/edit")
    paste(page, "name: refused\nsteps: {}\n")
    expect(page.get_by_test_id("finding-count")).to_contain_text("Fix the errors to save.")
    expect(page.get_by_test_id("save")).to_have_attribute("aria-disabled", "true")
    expect(page.get_by_test_id("save")).to_have_accessible_name(re.compile("Fix the errors"))
    page.keyboard.press("ControlOrMeta+s")
    expect(page.get_by_test_id("toast")).to_contain_text("Not saved: the definition has an error")
    expect(page.get_by_test_id("error")).to_contain_text("'steps' is missing or empty")
    expect(page.get_by_test_id("problem")).to_have_count(0)
    expect(text_of(page)).to_be_focused()
    expect(text_of(page)).to_contain_text("steps: {}")
    assert demo.client.workflow("refused")["version"] == 1
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.get_by_test_id("restored")).to_be_visible()
    expect(page.get_by_test_id("graph-state")).to_contain_text("the graph shows the saved version 1")
    expect(step(page, "apologize")).to_be_visible()
    check_appearance(page, "editor-broken-draft")
    page.get_by_test_id("discard").click()
    expect(text_of(page)).to_contain_text("For the readers.")
    expect(page.get_by_test_id("valid")).to_be_visible()
    expect(page.get_by_test_id("save")).not_to_have_attribute("aria-disabled", "true")


def test_an_unchecked_definition_is_not_called_valid(browser: Browser, demo: DemoSystem) -> None:
    letter(demo, "unchecked")
    with watched_page(browser, demo.url, cuts_are_expected=True) as page:
        page.goto("/workflows/unchecked/edit")
        expect(page.get_by_test_id("valid")).to_be_visible()
        expect(step(page, "apologize")).to_be_visible()
        page.context.set_offline(True)
        paste(page, "this is: [no workflow at all]")
        expect(page.get_by_test_id("not-checked")).to_have_text(
            "Not validated, because Trunkline is not responding."
        )
        expect(page.get_by_test_id("valid")).to_have_count(0)
        expect(page.get_by_test_id("problem")).to_have_count(0)
        expect(page.get_by_test_id("graph-state")).to_contain_text("The graph is outdated")
        expect(step(page, "apologize")).to_be_visible()
        expect(page.get_by_test_id("save")).to_have_accessible_name(re.compile("Trunkline is not responding"))
        expect(page.get_by_test_id("save")).to_have_attribute("aria-disabled", "true")
        check_appearance(page, "editor-unchecked")
        page.context.set_offline(False)
        expect(page.get_by_test_id("error").first).to_contain_text("unknown key 'this is'")
        expect(page.get_by_test_id("not-checked")).to_have_count(0)


def test_unsaved_changes_are_kept_and_warned_about(page: Page, demo: DemoSystem) -> None:
    letter(demo, "unsaved")
    page.goto("/workflows/unsaved/edit")
    expect(page.get_by_test_id("valid")).to_be_visible()
    write_at_the_end(page, "# Mine.")
    page.get_by_test_id("nav-agents").click()
    expect(page.get_by_role("dialog", name="Unsaved changes")).to_be_visible()
    check_appearance(page, "editor-leaving")
    page.get_by_test_id("stay").click()
    expect(page).to_have_url(re.compile("/workflows/unsaved/edit"))

    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", leave)
    page.reload()
    assert asked == ["beforeunload"]
    expect(page.get_by_test_id("restored")).to_be_visible()
    expect(text_of(page)).to_contain_text("# Mine.")
    page.get_by_test_id("nav-workflows").click()
    page.get_by_test_id("leave").click()
    expect(page).to_have_url(f"{demo.url}/workflows")

    page.goto("/workflows/unsaved/edit")
    page.get_by_test_id("discard").click()
    expect(text_of(page)).not_to_contain_text("# Mine.")
    page.reload()
    expect(page.get_by_test_id("valid")).to_be_visible()
    expect(page.get_by_test_id("restored")).to_have_count(0)


def test_a_version_that_came_meanwhile_is_not_taken_back_unasked(page: Page, demo: DemoSystem) -> None:
    text = letter(demo, "meanwhile")
    page.goto("/workflows/meanwhile/edit")
    expect(page.get_by_test_id("valid")).to_be_visible()
    demo.client.save_workflow(f"{text}deadline: 5m\n".encode())
    write_at_the_end(page, "    timeout: 7s")
    page.get_by_test_id("save").click()
    expect(page.get_by_test_id("conflict")).to_contain_text("Version 2 was saved after you started editing")
    check_appearance(page, "editor-doubt")
    page.get_by_test_id("do-not-save").click()
    assert demo.client.workflow("meanwhile")["version"] == 2
    page.get_by_test_id("save").click()
    page.get_by_test_id("save-anyway").click()
    expect(page.get_by_text("Saved as version 3 of meanwhile.")).to_be_visible()
    assert "timeout: 7s" in str(demo.client.workflow("meanwhile", 3)["source"])


def test_a_new_one_begins_with_a_template_and_takes_no_name_that_is_taken(
    page: Page, demo: DemoSystem
) -> None:
    page.goto("/workflows")
    page.get_by_test_id("new-workflow").click()
    expect(page.get_by_test_id("valid")).to_be_visible()
    expect(step(page, "first")).to_be_visible()
    check_appearance(page, "editor-new")
    template = "\n".join(text_of(page).locator(".cm-line").all_inner_texts())
    paste(page, template.replace("my-workflow", "demo"))
    page.get_by_test_id("save").click()
    expect(page.get_by_role("dialog", name="A workflow with this name exists")).to_be_visible()
    page.get_by_test_id("do-not-save").click()
    paste(page, template)
    page.get_by_test_id("save").click()
    expect(page).to_have_url(f"{demo.url}/workflows/my-workflow")
    expect(page.get_by_test_id("workflow-name")).to_have_text("my-workflow")


def test_another_name_makes_another_workflow_and_says_so(page: Page, demo: DemoSystem) -> None:
    text = letter(demo, "first-name")
    page.goto("/workflows/first-name/edit")
    paste(page, text.replace("first-name", "second-name"))
    expect(page.get_by_test_id("renamed")).to_contain_text("The workflow first-name does not change")
    page.get_by_test_id("save").click()
    expect(page).to_have_url(f"{demo.url}/workflows/second-name")
    assert demo.client.workflow("first-name")["version"] == 1


@pytest.mark.parametrize("width", [1024, 390])
def test_every_page_fits_a_narrow_screen(browser: Browser, demo: DemoSystem, width: int) -> None:
    letter(demo, "narrow")
    with watched_page(browser, demo.url, width=width) as page:
        for place, shown in {
            "": "workflows",
            "/narrow": "graph-step-write",
            "/narrow?tab=versions": "versions",
            "/narrow/edit": "valid",
        }.items():
            page.goto(f"/workflows{place}")
            expect(page.get_by_test_id(shown)).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, place
