"""A headless Chromium that reads MLflow's pages as a person does, and says what is wrong on them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium.common.exceptions import (
    ElementClickInterceptedException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--force-device-scale-factor=1",
    "--window-size=1500,1050",
    # A mouse that can hover, without which charts show their tools for ever, over their upper edge.
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    # Whatever a page wants from elsewhere fails, and so is found in the console.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_SECONDS_TO_WAIT = 60.0
_UNSETTLED = (NoSuchElementException, StaleElementReferenceException, ElementClickInterceptedException)
"""What happens while React draws: it is tried again."""

_ERROR_WORDS = (
    "something went wrong",
    "an error occurred",
    "error occurred while",
    "error while loading",
    "internal server error",
    "request error",
    "resource not found",
    "resource was not found",
    "page not found",
    "was not found",
    "does not exist",
    "failed to load",
    "unable to ",
    "invalid url",
)
"""What MLflow's pages say, in any of their banners, when something is wrong."""

_NOISE = (
    # Asked of every server; one without MLflow's login app has no such page.
    "/ajax-api/2.0/mlflow/users/current",
    # A layout that settles one frame later; the standard wants it said, nothing is lost.
    "ResizeObserver loop completed with undelivered notifications",
)

_NO_ASSISTANT = """
if (location.protocol === "http:") {
    localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
    localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");
}
"""
"""MLflow opens a chat beside the first page that a browser shows, which hides a quarter of it."""

_TRACES = """
return [...document.querySelectorAll(".js-plotly-plot")]
    .flatMap(plot => plot.data || [])
    .filter(trace => trace.type === "scatter" && trace.hoverinfo !== "skip" && trace.y && trace.y.length)
    .map(trace => ({run: trace.name, metric: trace.metricKey, x: Array.from(trace.x), y: Array.from(trace.y)}));
"""
"""A line that cannot be hovered is the pale double of one that may be smoothed."""


@dataclass(frozen=True)
class Trace:
    """One line of a chart: of which run and metric, and its points as they are drawn."""

    run: str
    metric: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Browser:
    """A window on one MLflow server."""

    driver: Chrome
    server: str
    pictures: Path

    def open(self, route: str, **query: str) -> None:
        """Load a page as if by its address."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.server}/#{route}?{urlencode(query, quote_via=quote)}")

    def choose_model_training(self) -> None:
        """Leave the view of those who trace chats, in which MLflow shows itself first; the choice stays."""
        self.open("/experiments")
        self.click("span", "Model training")
        self.element("a", "Model registry")

    def until(self, found: Callable[[], Any], what: str) -> Any:
        """Wait until ``found`` returns something, and return it."""
        wait = WebDriverWait(self.driver, _SECONDS_TO_WAIT, poll_frequency=0.2, ignored_exceptions=_UNSETTLED)
        try:
            return wait.until(lambda _: found())
        except TimeoutException:
            self.picture("unexpected")
            raise AssertionError(f"no {what} on {self.driver.current_url}:\n{self.text()[:2000]}") from None

    def element(self, css: str, text: str = "") -> WebElement:
        """Wait for a visible element and return it; ``text`` is the whole of its text."""
        found: WebElement = self.until(lambda: self._visible(css, text), f"'{css}' with text '{text}'")
        return found

    def click(self, css: str, text: str = "") -> None:
        """Wait for a visible element and press it."""

        def pressed() -> bool:
            found = self._visible(css, text)
            if found is not None:
                found.click()
            return found is not None

        self.until(pressed, f"'{css}' with text '{text}' to press")

    def choose(self, css: str, option: str, index: int = 0) -> None:
        """Open a list of choices, the ``index``-th of its kind on the page, and press one of them."""
        self.until(lambda: self._all_visible(css)[index:], f"'{css}' to choose from")[0].click()
        self.click("[role='option'], .du-bois-light-select-item-option", option)
        self.driver.switch_to.active_element.send_keys(Keys.ESCAPE)  # where several can be chosen the list stays

    def texts(self, css: str) -> list[str]:
        """Return the texts of all elements of a kind, as they are now."""
        return [found.text.strip() for found in self.driver.find_elements("css selector", css)]

    def text(self) -> str:
        """Return all text of the page."""
        return self.driver.find_element("css selector", "body").text

    def traces(self) -> list[Trace]:
        """Return the lines of all charts that are drawn now."""
        return [
            Trace(str(found["run"]), str(found["metric"]), tuple(zip(found["x"], found["y"], strict=True)))
            for found in self.driver.execute_script(_TRACES)
        ]

    def picture(self, name: str) -> Path:
        """Keep what the window shows."""
        self.pictures.mkdir(parents=True, exist_ok=True)
        path = self.pictures / f"{name}.png"
        self.driver.save_screenshot(str(path))
        return path

    def faults(self) -> list[str]:
        """Return every banner of an error, and every error in the console since it was asked last."""
        said = [line for line in self.text().splitlines() if any(words in line.lower() for words in _ERROR_WORDS)]
        entries: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        logged = [str(entry["message"]) for entry in entries if entry["level"] == "SEVERE"]
        return said + [message for message in logged if not any(noise in message for noise in _NOISE)]

    def _visible(self, css: str, text: str) -> WebElement | None:
        found = (one for one in self._all_visible(css) if not text or one.text.strip() == text)
        return next(found, None)

    def _all_visible(self, css: str) -> list[WebElement]:
        return [found for found in self.driver.find_elements("css selector", css) if found.is_displayed()]


def programs() -> tuple[str, str]:
    """Return the paths of Chromium and of its driver; the test is skipped where they are not."""
    paths = shutil.which("chromium"), shutil.which("chromedriver")
    if paths[0] is None or paths[1] is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    return paths[0], paths[1]


@contextmanager
def chromium(server: str, pictures: Path) -> Iterator[Browser]:
    """Open a window, for the length of the block."""
    program, driver = programs()
    options = ChromeOptions()
    options.binary_location = program
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=Service(executable_path=driver))
    try:
        chrome.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _NO_ASSISTANT})
        yield Browser(chrome, server, pictures)
    finally:
        chrome.quit()
