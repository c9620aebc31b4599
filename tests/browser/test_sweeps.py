"""A sweep in MLflow's own pages: the views that lay all its trials side by side."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.chromium import Browser
from tests.browser.shown import EPOCHS, NON_FINITE, SEARCHED, STOPPED, TRIALS, Shown, quoted
from tests.browser.test_packs import open_table, the_trace, unfold

AXES = """
return [...document.querySelectorAll(".js-plotly-plot")]
    .flatMap(plot => plot.data || [])
    .filter(trace => trace.type === "parcoords")
    .map(trace => Object.fromEntries(trace.dimensions.map(axis => [axis.label, Array.from(axis.values)])))[0];
"""
DOTS = """
return [...document.querySelectorAll(".js-plotly-plot")]
    .flatMap(plot => plot.data || [])
    .filter(trace => trace.type === "scattergl")
    .flatMap(trace => Array.from(trace.x).map((x, index) => [Number(x), Number(trace.y[index])]));
"""


def compare(browser: Browser, shown: Shown) -> list[str]:
    trials = sorted(shown.children("search/sweep"))
    ids = quoted([shown.id(trial) for trial in trials])
    browser.open("/compare-runs", runs=ids, experiments=quoted([shown.experiment]))
    browser.element("h1, h2, h3", f"Comparing {TRIALS} Runs from 1 Experiment")
    return trials


def axes(browser: Browser) -> dict[str, list[float]]:
    return browser.driver.execute_script(AXES) or {}


def dots(browser: Browser) -> set[tuple[float, float]]:
    return {(round(x, 4), y) for x, y in browser.driver.execute_script(DOTS)}


def tried(shown: Shown, trial: str) -> dict[str, Any]:
    return shown.sweep.trial(int(trial[-3:])).record().values


def test_a_sweep_and_its_trials_in_the_table(browser: Browser, shown: Shown) -> None:
    open_table(browser, shown, "tags.`sfora.sweep` LIKE 'search-%'")
    unfold(browser, {shown.name("search/sweep"), *(shown.name(f"search/t{number:03d}") for number in range(TRIALS))})
    browser.picture("sweep")
    assert browser.faults() == []


def test_all_trials_in_parallel_coordinates(browser: Browser, shown: Shown) -> None:
    trials = compare(browser, shown)
    assert {*SEARCHED} < set(browser.until(lambda: axes(browser), "axes")), "what was searched is there unasked"
    browser.choose(".du-bois-light-select-selector", "score", index=1)
    drawn = browser.until(lambda: "score" in axes(browser) and axes(browser), "axis 'score'")
    browser.picture("sweep-parallel")
    assert len(trials) == TRIALS
    for path in SEARCHED:
        assert drawn[path] == pytest.approx([tried(shown, trial)[path] for trial in trials], rel=1e-6)
    assert drawn["score"] == pytest.approx([shown.runs[trial].data.metrics["score"] for trial in trials])
    assert drawn["score"][NON_FINITE] == 0.0
    assert browser.faults() == []


def test_trials_as_a_scatter_plot(browser: Browser, shown: Shown) -> None:
    trials = compare(browser, shown)
    browser.click("[role='tab']", "Scatter Plot")
    browser.choose("#x-axis-selector", "recipe.weight")
    browser.choose("#y-axis-selector", "score")
    wanted = {
        (round(tried(shown, trial)["recipe.weight"], 4), shown.runs[trial].data.metrics["score"]) for trial in trials
    }
    browser.until(lambda: dots(browser) == wanted, f"the dots {wanted}")
    browser.picture("sweep-scatter")
    assert browser.faults() == []


def test_the_page_of_a_trial_says_what_was_tried_and_how_it_ended(browser: Browser, shown: Shown) -> None:
    for number, status in ((0, "finished"), (STOPPED, "stopped"), (NON_FINITE, "non_finite")):
        key = f"search/t{number:03d}"
        browser.open(shown.page(key))
        browser.element("h1, h2, h3", shown.name(key))
        browser.element("a", "score")
        said = browser.text()
        record, end = shown.sweep.trial(number).record(), shown.sweep.trial(number).end()
        assert end is not None
        for path, value in record.values.items():
            assert path in said
            assert str(value)[:6] in said
        assert f"sfora.status\n: {status}" in said
        assert end.reason[:20] in said
        browser.picture(f"trial-{status}")
        assert browser.faults() == []


def test_a_trial_has_a_curve(browser: Browser, shown: Shown) -> None:
    browser.open(shown.page("search/t000", "/model-metrics"))
    rounds = [(one.epoch, one.value) for one in shown.sweep.trial(0).rounds()]
    assert len(rounds) == EPOCHS
    traces = browser.until(lambda: len(browser.traces()) > 2 and browser.traces(), "charts")
    browser.picture("trial-curves")
    assert the_trace(traces, shown.name("search/t000"), "recall_at_1") == rounds
    assert browser.faults() == []


def test_the_best_configuration_can_be_read_in_place(browser: Browser, shown: Shown) -> None:
    browser.open(shown.page("search/sweep", "/artifacts/best.yaml"))
    browser.until(lambda: "The best configuration of the sweep search" in browser.text(), "text of best.yaml")
    browser.picture("sweep-best")
    assert browser.faults() == []
