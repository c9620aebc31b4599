"""A comparison of two packs in MLflow's own pages."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Browser
from tests.browser.shown import Shown

COMPARISON = "compare/"


def test_the_page_of_a_comparison_has_its_differences_and_what_must_be_said(browser: Browser, shown: Shown) -> None:
    browser.open(shown.page(COMPARISON))
    browser.element("h1, h2, h3", "compare: plain vs grown")
    browser.element("a", "difference.map_at_r")
    (test,) = [test for test in shown.comparison.seeds if test.metric == "map_at_r"]
    said = browser.text()
    number = said.partition("\ndifference.map_at_r\n")[2].partition("\n")[0]
    assert float(number) == pytest.approx(test.difference.mean)
    assert float(number) != 0.0
    assert "sfora.kind\n: comparison" in said
    assert "baseline\nplain" in said
    assert shown.comparison.labels[0][:60] in said
    browser.picture("comparison")
    assert browser.faults() == []


def test_the_report_of_a_comparison_is_shown_in_its_frame(browser: Browser, shown: Shown) -> None:
    browser.open(shown.page(COMPARISON, "/artifacts/index.html"))
    browser.driver.switch_to.frame(browser.element("iframe.mlflow-html-iframe"))
    try:
        heading = browser.element("h1").text
        assert "plain" in heading
        assert "grown" in heading
        assert browser.driver.execute_script("return document.querySelectorAll('svg').length") > 0
    finally:
        browser.driver.switch_to.default_content()
    browser.picture("comparison-report")
    assert browser.faults() == []
