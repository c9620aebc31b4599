import html as standard_html
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfora_ray.pack.summary import Spread
from sfora_ray.reporting.html import element, text
from sfora_ray.reporting.markdown import escape
from sfora_ray.reporting.sections.settings import flatten
from sfora_ray.reporting.wording import duration, interval, metric_order, percent, rate, spread


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "–"),
        (4.21, "4.2 s"),
        (60, "1 min 00 s"),
        (200.4, "3 min 20 s"),
        (3599.7, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_duration(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(("number", "said"), [(0, "–"), (0.25, "0.2"), (9.87, "9.9"), (10, "10"), (1234.5, "1,234")])
def test_rate(number: float, said: str) -> None:
    assert rate(number) == said


def test_shares() -> None:
    assert percent(0.71234) == "71.23"
    assert percent(None) == "–"
    assert interval((0.5, 0.6125)) == "[50.00, 61.25]"
    assert spread(Spread(mean=0.5, std=None, n=1, ci95=None)) == "50.00"


def test_metrics_keep_their_usual_order() -> None:
    found = metric_order([{"nmi": 1, "zeta": 1}, {"recall_at_2": 1, "recall_at_1": 1, "alpha": 1}])
    assert found == ("recall_at_1", "recall_at_2", "nmi", "alpha", "zeta")


@given(st.text(st.characters(exclude_categories=("Cs", "Cc"))))
def test_html_text_comes_back(plain: str) -> None:
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            found.append(data)

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert (tag, attrs) == ("p", [("title", plain)])

    reader = Reader(convert_charrefs=True)
    reader.feed(element("p", text(plain), title=plain))
    reader.close()
    assert "".join(found) == plain


@given(st.text(st.sampled_from("ab |*_`<>&\\\n[]~$#!\t")))
def test_markdown_cell_stays_one_cell(plain: str) -> None:
    written = escape(plain)
    assert "\n" not in written
    assert not set("<>") & set(written)
    unescaped, place = "", 0
    while place < len(written):
        if written[place] == "\\":
            place += 1
        else:
            assert written[place] not in "|*_`[]~#$!"
        unescaped += written[place]
        place += 1
    assert standard_html.unescape(unescaped) == " ".join(plain.split())


def test_settings_are_flat_and_hide_passwords() -> None:
    values = {"a": {"b": 1, "c": {"d": [1, 2]}}, "e": {}, "uri": "http://me:secret@host:5000/x", "f": None}
    assert list(flatten(values)) == [
        ("a.b", "1"),
        ("a.c.d", "[1, 2]"),
        ("e", "{}"),
        ("uri", "http://***@host:5000/x"),
        ("f", "null"),
    ]
