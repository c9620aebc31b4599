"""Packs in MLflow's own pages: what a reader finds, and that nothing on the way is an error."""

from __future__ import annotations

import time

import numpy as np

from sfora_ray.pack.run_folder import RunFolder
from tests.browser.chromium import Browser, Trace
from tests.browser.shown import EPOCHS, Shown, quoted

NAMES = ".ag-row a[href*='/runs/']"
FOLDED = ".ag-row button[data-component-id*='runnamecellrenderer']:has(path[d^='M7.25 7.25'])"
"""The plus before a run whose children are not shown."""
TICKS = ".ag-row input.ag-checkbox-input"
LOSS, RECALL = "loss", "test.recall_at_1"


def open_table(browser: Browser, shown: Shown, query: str = "", **more: str) -> None:
    browser.open(f"/experiments/{shown.experiment}/runs", searchFilter=query, **more)
    browser.element(NAMES)


def unfold(browser: Browser, names: set[str]) -> None:
    """Show the children of every run; a table that is filled anew folds them again."""

    def unfolded() -> bool:
        for plus in browser.driver.find_elements("css selector", FOLDED):
            plus.click()
            time.sleep(1)
        return set(browser.texts(NAMES)) == names

    browser.until(unfolded, f"rows {names}")


def curve(run: RunFolder, index: int, key: str) -> list[tuple[float, float]]:
    """Return a member's curve as its folder has it."""
    found = run.member(run.specs()[index]).epochs()
    if key == LOSS:
        return [(record.epoch, record.loss["total"]) for record in found]
    return [(record.epoch, record.metrics["test"][key.removeprefix("test.")]) for record in found]


def names_of(shown: Shown, *packs: str) -> set[str]:
    """Return the names of packs and their members."""
    return {shown.name(key) for pack in packs for key in (f"{pack}/pack", *shown.children(f"{pack}/pack", "member"))}


def the_trace(traces: list[Trace], run: str, metric: str) -> list[tuple[float, float]]:
    (found,) = [trace for trace in traces if (trace.run, trace.metric) == (run, metric)]
    return list(found.points)


def test_from_the_list_of_experiments_to_the_children_of_a_pack(browser: Browser, shown: Shown) -> None:
    browser.open("/experiments")
    browser.click("a", "sfora")
    tops = {shown.name(key) for key in ("grown/pack", "plain/pack", "search/sweep", "compare/")}
    browser.until(lambda: set(browser.texts(NAMES)) == tops, f"table of {tops}")
    browser.picture("experiment")

    open_table(browser, shown, "tags.`sfora.pack` LIKE 'grown-%'")
    assert browser.texts(NAMES) == [shown.name("grown/pack")]
    children = {str(run.info.run_name) for run in shown.children("grown/pack").values()}
    unfold(browser, {shown.name("grown/pack"), *children})
    browser.picture("pack")
    assert browser.faults() == []


def test_a_pack_has_children_for_members_folds_and_each_state_of_its_curve(shown: Shown) -> None:
    assert set(shown.children("grown/pack", "member")) == {"grown/m00", "grown/m01", "grown/m02"}
    assert set(shown.children("grown/pack", "curve")) == {f"grown/curve:{size}x{EPOCHS}" for size in (2, 3)}
    folds = {f"grown/fold:{fold.name}" for fold in shown.pack.summary().folds}
    assert set(shown.children("grown/pack", "fold")) == folds
    assert len(folds) > 3


def test_the_page_of_a_pack_tells_its_state_and_names_its_children(browser: Browser, shown: Shown) -> None:
    browser.open(shown.page("grown/pack"))
    browser.element("h1, h2, h3", shown.name("grown/pack"))
    browser.element("[data-testid='key-value-Status']")
    assert "Finished" in browser.text()
    browser.element("a", shown.name("grown/curve:3x4"))
    browser.element("a", "recall_at_1.mean")
    mean = shown.pack.summary().single["recall_at_1"].mean
    assert f"recall_at_1.mean\n{mean}\n" in browser.text()
    browser.picture("pack-page")
    assert browser.faults() == []


def test_the_page_of_a_member_shows_its_numbers_and_its_settings(browser: Browser, shown: Shown) -> None:
    browser.open(shown.page("grown/m00"))
    browser.element("h1, h2, h3", shown.name("grown/m00"))
    browser.element("a", shown.name("grown/pack"))
    browser.element("a", LOSS)
    said = browser.text()
    assert str(curve(shown.pack, 0, LOSS)[-1][1])[:10] in said
    assert "sfora.seed\n: 5" in said
    browser.picture("member")
    assert browser.faults() == []


def test_the_curves_of_a_member_are_those_of_its_folder(browser: Browser, shown: Shown) -> None:
    browser.open(shown.page("grown/m00", "/model-metrics"))
    traces = browser.until(lambda: len(browser.traces()) > 2 and browser.traces(), "charts")
    browser.picture("member-curves")
    np.testing.assert_allclose(the_trace(traces, shown.name("grown/m00"), LOSS), curve(shown.pack, 0, LOSS))
    assert browser.faults() == []


def test_runs_that_are_ticked_are_compared_curve_over_curve(browser: Browser, shown: Shown) -> None:
    open_table(browser, shown, "tags.`sfora.kind` = 'member' AND tags.`sfora.pack` LIKE 'grown-%'")
    unfold(browser, names_of(shown, "grown"))
    for box in browser.driver.find_elements("css selector", TICKS)[1:]:
        box.click()
    browser.click("[data-testid='runs-compare-button']")
    browser.element("h1, h2, h3", "Comparing 3 Runs from 1 Experiment")
    browser.element(".js-plotly-plot")
    browser.picture("compare")
    browser.click("a[title='Plot chart']", LOSS)
    traces = browser.until(lambda: len(browser.traces()) == 3 and browser.traces(), "three curves")
    browser.picture("compare-curves")
    for index in range(3):
        drawn = the_trace(traces, shown.name(f"grown/m0{index}"), LOSS)
        np.testing.assert_allclose(drawn, curve(shown.pack, index, LOSS))
    assert browser.faults() == []


def test_members_of_two_packs_over_each_other(browser: Browser, shown: Shown) -> None:
    open_table(browser, shown, "tags.`sfora.kind` = 'member'", compareRunsMode="CHART")
    unfold(browser, names_of(shown, "grown", "plain"))
    browser.element("input[placeholder='Search metric charts']").send_keys(f"^{RECALL}$")
    members = [("grown", shown.pack, index) for index in range(3)] + [("plain", shown.other, index) for index in (0, 1)]
    traces = browser.until(lambda: len(browser.traces()) == len(members) and browser.traces(), "five curves")
    browser.picture("members")
    for folder, run, index in members:
        drawn = the_trace(traces, shown.name(f"{folder}/m0{index}"), RECALL)
        np.testing.assert_allclose(drawn, curve(run, index, RECALL))
    assert browser.faults() == []


def test_the_curve_by_pack_size(browser: Browser, shown: Shown) -> None:
    part = f"grown/curve:3x{EPOCHS}"
    browser.open(shown.page(part, "/model-metrics"))
    traces = browser.until(lambda: len(browser.traces()) > 2 and browser.traces(), "charts")
    browser.picture("pack-size")
    sizes = [(point.size, point.metrics["map_at_r"]) for point in shown.pack.summary().pack_curve]
    assert [size for size, _ in sizes] == [1, 2, 3]
    np.testing.assert_allclose(the_trace(traces, shown.name(part), "map_at_r"), sizes)
    assert browser.faults() == []


def test_the_report_is_shown_in_its_frame(browser: Browser, shown: Shown) -> None:
    browser.open(shown.page("grown/pack", "/artifacts/report/index.html"))
    browser.driver.switch_to.frame(browser.element("iframe.mlflow-html-iframe"))
    try:
        browser.element("h1", "Pack grown")
        said = browser.text()
        assert "3 members side by side reach" in said
        assert browser.driver.execute_script("return document.querySelectorAll('svg, img').length") > 2
    finally:
        browser.driver.switch_to.default_content()
    browser.picture("report")
    assert browser.faults() == []


def test_a_page_that_is_wrong_is_found_out(browser: Browser, shown: Shown) -> None:
    """The other tests prove nothing if this one fails."""
    nobody = f"/experiments/{shown.experiment}/runs/{'0' * 32}"
    browser.open(nobody)
    browser.until(lambda: "not found" in browser.text().lower(), "word of a run that is not there")
    browser.picture("not-there")
    faults = browser.faults()
    assert any("not found" in fault.lower() for fault in faults)
    browser.open("/compare-runs", runs=quoted(["0" * 32]), experiments=quoted([shown.experiment]))
    browser.until(lambda: "rror" in browser.text(), "word of an error")
    assert browser.faults() != []
