"""The page in a real browser: on a phone, on paper, by keyboard, in the dark, without scripts."""

from __future__ import annotations

import base64
import io
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cudnn_compat.matrix.page import write_html
from tests.matrix_page.browser import Browser
from tests.matrix_page.made import LONG, NO_GPU, NO_HALF, Write, record, usual

CONTRASTS = """
const luminance = (color) => {
  const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((c) => {
    c /= 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (; element; element = element.parentElement) {
    const color = getComputedStyle(element).backgroundColor;
    if (!/, 0\\)$/.test(color)) return color;
  }
  return "rgb(255, 255, 255)";
};
document.querySelectorAll("details").forEach((each) => (each.open = true));
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const element = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !element.getClientRects().length) continue;
  const [a, b] = [getComputedStyle(element).color, behind(element)].map(luminance);
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  found.push([ratio, walk.currentNode.data.trim(), element.className]);
}
return found;
"""
"""Of every text that is shown: WCAG's contrast, the text, the class."""


def test_the_page_has_no_script_and_asks_no_network_for_anything(
    browser: Browser, page: Path
) -> None:
    browser.show(page)
    assert browser.ask("return document.title") == "cudnn_compat: what works with what"
    assert browser.ask("return document.scripts.length") == 0
    assert browser.ask("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    # The style sheet is let through by its hash alone: were it wrong, nothing would be styled.
    assert browser.ask("return getComputedStyle(document.querySelector('.tip')).display") == "none"


def test_groups_open_and_close_without_javascript(browser: Browser, page: Path) -> None:
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.show(page)
        for _ in range(2):
            group = browser.find("details:not([open])")
            table = group.find_element("css selector", "table")
            assert not table.is_displayed()
            group.find_element("css selector", "summary").click()
            assert table.is_displayed()
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_the_page_is_never_wider_than_the_screen(browser: Browser, page: Path, width: int) -> None:
    browser.show(page, width)
    browser.ask("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    wide = "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert browser.ask(wide) == [width, width]


def test_on_a_phone_tables_scroll_in_their_frame_and_keep_their_first_column(
    browser: Browser, page: Path
) -> None:
    browser.show(page, 360)
    before, after, frame, scrolled, head = browser.ask("""
        const scroll = document.querySelector("details[open] .scroll");
        const first = scroll.querySelector("tbody th"), cell = scroll.querySelector("tbody td");
        const left = (element) => Math.round(element.getBoundingClientRect().left);
        const before = [left(first), left(cell)];
        scroll.scrollLeft = 300;
        scroll.scrollTop = 200;
        const top = (element) => Math.round(element.getBoundingClientRect().top);
        return [before, [left(first), left(cell)], left(scroll), scroll.scrollLeft,
                top(scroll.querySelector("thead th")) - top(scroll)];
    """)
    assert scrolled == 300
    assert after == [before[0], before[1] - 300]
    assert before[0] - frame <= 1
    assert head <= 1  # and the names of the environments stay at the top
    names = browser.ask("""
        return [...document.querySelectorAll("details[open] tbody th")].map((e) => e.clientWidth)
    """)
    assert max(names) <= 180  # half a screen is left for what the names are about


def tip_of(browser: Browser, link: Any) -> str:
    """What is shown beside a link, and where: inside the window."""
    tip = link.find_element("css selector", ".tip")
    assert tip.is_displayed()
    low, high = browser.ask(
        "const r = arguments[0].getBoundingClientRect(); return [r.top, innerHeight - r.bottom]",
        tip,
    )
    assert low >= 0
    assert high >= 0
    text: str = tip.text
    return text


@pytest.mark.parametrize("width", [360, 1280])
def test_the_reason_of_a_gap_is_shown_when_the_keyboard_comes_to_it(
    browser: Browser, page: Path, width: int
) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    browser.show(page, width)
    browser.ask("document.querySelector('details[open] tbody tr:nth-child(8)').scrollIntoView()")
    browser.ask("document.querySelector('details[open] summary').focus()")
    texts = {}
    while len(texts) < 2:
        browser.driver.switch_to.active_element.send_keys(keys.TAB)
        link = browser.driver.switch_to.active_element
        assert link.tag_name != "summary", "every cell was passed"
        href = link.get_attribute("href") or ""
        if "#note-" not in href or link.text.split()[0] in texts:
            continue
        texts[link.text.split()[0]] = tip_of(browser, link)
        # The bar with the reason does not cover what it is about.
        bottom, top = browser.ask(
            "return [arguments[0].getBoundingClientRect().bottom, "
            "arguments[0].querySelector('.tip').getBoundingClientRect().top]",
            link,
        )
        assert bottom <= top
    assert texts["refused"] == f"refused: {NO_HALF}"
    assert texts["works"].startswith("refused: reason number 0 of a long list")  # 3 of 4 rows


def test_the_reason_of_a_gap_is_shown_under_the_pointer(browser: Browser, page: Path) -> None:
    chains = pytest.importorskip("selenium.webdriver.common.action_chains")
    browser.show(page)
    link = browser.find("#environments ~ .scroll td.s4 a")
    assert not link.find_element("css selector", ".tip").is_displayed()
    chains.ActionChains(browser.driver).move_to_element(link).perform()
    assert tip_of(browser, link) == NO_GPU


def test_a_tap_on_a_gap_leads_to_its_reason(browser: Browser, page: Path) -> None:
    browser.show(page, 360)
    link = browser.find("details[open] td.s2 a")
    link.click()
    note = browser.find(":target")
    assert note.tag_name == "li"
    assert note.text == f"refused: {NO_HALF}"
    assert browser.ask("return arguments[0].value", note) == int(link.text.split()[1])


def squeezed(text: str) -> str:
    """Without spaces and line breaks, which a printer puts anywhere, and without ligatures."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def test_on_paper_every_table_and_every_reason_is_there(browser: Browser, page: Path) -> None:
    pypdf = pytest.importorskip("pypdf", reason="reading PDF needs pypdf (group dev)")
    browser.show(page)
    assert browser.ask("return document.querySelectorAll('details:not([open])').length") > 2
    printed = browser.devtools("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
    pdf = pypdf.PdfReader(io.BytesIO(base64.b64decode(printed["data"])))
    text = squeezed("".join(each.extract_text() for each in pdf.pages))
    for wanted in (
        *(NO_GPU, NO_HALF, LONG, "use CuPy's own", "no interpreter of Python 3.14 was found"),
        *("convolution_forward", "cudnnGetLastErrorString"),  # of groups that are closed
        *("it exists from cuDNN 9.0 on", "dx is off by 3.1", "2026-06-03"),
    ):
        assert squeezed(wanted) in text, wanted
    width = float(pdf.pages[0].mediabox.width)
    assert width > float(pdf.pages[0].mediabox.height)


def test_on_paper_no_table_is_wider_than_the_page(browser: Browser, page: Path) -> None:
    browser.show(page, 1047, media="print")  # A4 across, less the margins, in CSS pixels
    assert browser.ask("return document.documentElement.scrollWidth") <= 1047


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("media", ["", "print"])
def test_every_text_stands_out_from_what_is_behind_it(
    browser: Browser, page: Path, media: str, scheme: str
) -> None:
    browser.show(page, media=media, scheme=scheme)
    found = browser.ask(CONTRASTS)
    assert len(found) > 300
    assert {f"s{number}" for number in range(6)} <= {
        each for _, _, names in found for each in names.split()
    }
    assert [each for each in found if each[0] < 4.5] == []
    page_is_dark = browser.ask("return getComputedStyle(document.body).backgroundColor")
    assert page_is_dark == (
        "rgb(20, 24, 29)" if (scheme, media) == ("dark", "") else "rgb(255, 255, 255)"
    )


def test_every_coloured_cell_says_in_words_what_its_colour_says(
    browser: Browser, page: Path
) -> None:
    browser.show(page)
    words = ("works", "works differently", "refused", "not offered", "not tested here", "failed")
    cells = browser.ask("""
        return [...document.querySelectorAll("details td[class^=s]")].map(
            (each) => [each.className, each.firstElementChild?.firstChild.data ?? each.textContent])
    """)
    assert len(cells) > 100
    for name, text in cells:
        assert " ".join(text.split()) == words[int(name[1:])]


def test_headings_go_down_one_by_one_and_tables_tell_what_their_heads_are_of(
    browser: Browser, page: Path
) -> None:
    browser.show(page)
    levels = browser.ask(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map((e) => +e.tagName[1])"
    )
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for query in (
        "th:not([scope=row]):not([scope=col])",
        "thead th:not([scope=col])",
        "tbody th:not([scope=row])",
        "tbody tr:not(:has(> th:first-child))",
        ".scroll:not([role=region][tabindex='0'])",
        ".scroll:not([aria-label], [aria-labelledby])",
        "html:not([lang=en])",
        "a:not([href^='#'])",
    ):
        assert browser.ask("return document.querySelectorAll(arguments[0]).length", query) == 0, (
            query
        )
    broken, twice = browser.ask("""
        const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
        const to = [...document.querySelectorAll("a")].map((each) => each.hash.slice(1));
        to.push(...[...document.querySelectorAll("[aria-labelledby]")].map(
            (each) => each.getAttribute("aria-labelledby")));
        return [to.filter((each) => !ids.includes(each)), ids.length - new Set(ids).size];
    """)
    assert broken == []
    assert twice == 0


HOSTILE = (
    "<script>document.title = 'taken'</script>",
    '"><img src=x onerror="document.title=\'taken\'">',
    "</style></table><h1>taken</h1><a href='javascript:alert(1)'>x</a>",
    "{{ 7 * 191 }}{% raw %}&lt;b&gt;",
)


def test_whatever_a_record_holds_is_shown_as_text(browser: Browser, write: Write) -> None:
    made = []
    for number, text in enumerate(HOSTILE):
        each = record(f"env-{number}", f"3.1{number}.1 2.0.2 - -", *usual(), gpu=text)
        each["combination"]["label"] = text
        each["combination"]["versions"]["numpy"] = text
        for found in each["capabilities"]:
            found["entry_points"] = [text]
            for reason in found["reasons"]:
                reason["reason"] = text
        each["capabilities"][0] |= {"id": f"v2/{text}/numpy", "feature": text}
        each["environment"]["cudnn_compat"]["version"] = text
        made.append(each)
    lost = record("lost", "3.14 2 14 -", tested=False, reason=HOSTILE[0], gpu=HOSTILE[1])
    out = write("", "page").with_suffix(".html")
    write_html([write(each) for each in (*made, lost)], out)
    browser.show(out)
    assert browser.ask("return document.title") == "cudnn_compat: what works with what"
    for element in ("script", "img", "b > b"):
        assert browser.ask("return document.querySelectorAll(arguments[0]).length", element) == 0
    assert browser.ask("return document.querySelectorAll('h1').length") == 1
    assert browser.ask("return document.querySelectorAll('a:not([href^=\"#\"])').length") == 0
    notes = browser.ask(
        "return [...document.querySelectorAll('.notes p')].map((each) => each.textContent)"
    )
    for text in HOSTILE:
        assert any(each.endswith(f": {text}") for each in notes), text
