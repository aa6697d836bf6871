"""The short answers, and the page in Markdown."""

from __future__ import annotations

import html.parser
import re
from pathlib import Path

import pytest

from cudnn_compat.cudnn.symbols import read_manifest
from cudnn_compat.matrix.page import merge, summary, write_html, write_markdown
from cudnn_compat.matrix.page.merge import Matrix
from tests.matrix_page.made import NO_GPU, NO_HALF, Json, Write, capability, record, usual

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def matrix(paths: list[Path]) -> Matrix:
    return merge(paths)


def test_a_version_works_if_nothing_failed_with_it(matrix: Matrix) -> None:
    said = {
        f"{part} {each.name}": each.answer.text
        for part, members in summary.versions(matrix).items()
        for each in members
    }
    assert said == {
        "Python 3.11": "works",
        "Python 3.12": "1 failed",
        "Python 3.13": "works",
        "Python 3.14": "not tested here",
        "NumPy 1.26": "works",
        "NumPy 2.0": "works",
        "NumPy 2.4": "1 failed",
        "CuPy 13.6": "works as far as it goes without a GPU",
        "CuPy 14.1": "1 failed",
        "cuDNN 8.9.7": "works as far as it goes without a GPU",
        "cuDNN 9.0.0": "works as far as it goes without a GPU",
        "cuDNN 9.19.0": "1 failed",
        "cuDNN 9.28.1": "works as far as it goes without a GPU",
        "GPU NVIDIA H200": "1 failed",
    }
    assert summary.verdict(matrix).text == "1 capability failed."
    assert summary.verdict(matrix).reasons[0][0].endswith("on a GPU: backward, in environment 12")


def test_families_join_what_one_program_uses(matrix: Matrix) -> None:
    titles = [family.title for family in summary.families(matrix)]
    assert titles == [
        *("v2 on NumPy", "v2 on cuDNN", "RNNDesc on NumPy", "cupy.cudnn on NumPy", "the C library")
    ]
    joined = [group for family in summary.families(matrix) for group in family.groups]
    assert sorted(group.id for group in joined) == sorted(group.id for group in matrix.groups)


@pytest.mark.parametrize(
    ("statuses", "status", "text"),
    [
        ("works works", "works", "works"),
        ("works refused refused", "works differently", "1 works, 2 refused"),
        ("works works failed", "failed", "1 failed, 2 work"),
        ("works not-tested-here", "works differently", "1 works, 1 not tested here"),
        ("not-tested-here", "not tested here", "not tested here"),
        ("not-offered not-offered", "not offered", "not offered"),
        ("works-differently works-differently works", "works differently", None),
    ],
)
def test_several_capabilities_together_are_counted_where_they_differ(
    statuses: str, status: str, text: str | None, write: Write
) -> None:
    made = [
        capability(f"v2/f{number}/numpy", each.replace("-", " "), "why")
        for number, each in enumerate(statuses.split())
    ]
    matrix = merge([write(record("one", "3.12.1 2.0.2 - -", *made))])
    found = summary.answer(matrix.groups, "one")
    assert found.status == status
    assert found.text == (text or "1 works, 2 work differently")
    gaps = sum(each != "works" for each in statuses.split())
    assert found.reasons == ((("why", gaps),) if gaps else ())


def test_old_records_and_those_of_another_release_are_told(matrix: Matrix) -> None:
    assert summary.notices(matrix) == {
        "gpu": [
            "old: 180 days before the newest",
            "of cudnn_compat 2.0.0rc1; the newest is of 2.0.0",
        ]
    }
    assert summary.dates(matrix) == "2026-06-03 to 2026-11-30"


class Text(html.parser.HTMLParser):
    """The text of a page, without tags; what is no HTML raises."""

    VOID = ("meta", "link", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data


def test_the_page_closes_what_it_opens_and_tells_dates_gaps_and_what_was_not_tested(
    page: Path,
) -> None:
    reader = Text()
    reader.feed(page.read_text(encoding="utf-8"))
    assert reader.open == []
    words = " ".join(reader.words.split())
    for wanted in (
        *("2026-11-30", "2026-06-03", "old: 180 days before the newest", NO_HALF),
        "not tested here in: Python 3.14, NumPy newest, CuPy 14: no interpreter of Python 3.14",
        f"CuPy 14.1.1: {NO_GPU}",
        "error 1.0e-06 of 2.0e-05",
        "3 of 4 rows work",
    ):
        assert wanted in words, wanted


def test_the_page_names_no_other_place_and_no_day_but_the_records(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(src|href|url\()\s*=?\s*[\"']?(https?:)?//", text)
    assert set(re.findall(r"20\d\d-\d\d-\d\d", text)) == {"2026-06-03", "2026-11-30"}


def markdown(write: Write, *made: Json) -> str:
    out = write("", "page").with_suffix(".md")
    write_markdown([write(each) for each in made], out)
    return out.read_text(encoding="utf-8")


def test_the_page_in_markdown_has_the_summary_and_every_reason(
    paths: list[Path], tmp_path: Path
) -> None:
    write_markdown(paths, tmp_path / "matrix.md")
    text = (tmp_path / "matrix.md").read_text(encoding="utf-8")
    for wanted in (
        "| Python | 3.11: works; 3.12: **1 failed**; 3.13: works; 3.14: not tested here "
        "(no interpreter of Python 3.14 was found) |",
        "| 1 | Python 3.11.7, NumPy 1.26.4, CuPy 13.6.0 | 8 work, 1 works differently, 1 refused |",
        f"- **not tested here** in 1-7: {NO_GPU}",
        f"- math_half: **refused**: {NO_HALF}",
        "- backward: **failed**: dx is off by 3.1",
        "2026-06-03; old: 180 days before the newest; of cudnn_compat 2.0.0rc1",
    ):
        assert wanted in text, wanted
    heads = [line.count("|") for line in text.splitlines() if line.startswith("| ---")]
    assert heads  # and every line of a table has as many cells as its head
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_markdown_shows_hostile_text_as_text(write: Write) -> None:
    text = "a|b `c` <script>x</script>\n# d [e](http://f) **g** _h_ snake_case"
    made = record("one", "3.12.1 2.0.2 - -", capability("v2/f/numpy", "failed", text))
    said = markdown(write, made)
    assert r"a\|b \`c\` &lt;script&gt;x&lt;/script&gt; # d \[e\](http://f) \*\*g\*\* \_h\_" in said
    assert "snake_case" in said
    assert "<script" not in said
    assert "\n# d" not in said


def test_where_nothing_failed_and_nothing_is_missing_the_page_says_so(write: Write) -> None:
    made = record("one", "3.12.1 2.0.2 - -", capability("v2/f/numpy"))
    out = write("", "page").with_suffix(".html")
    write_html([write(made)], out)
    assert "Nothing failed." in out.read_text(encoding="utf-8")
    assert "<p>There is none.</p>" in out.read_text(encoding="utf-8")
    assert "**Nothing failed.**" in markdown(write, made)


def test_both_pages_tell_which_cudnn_has_which_function(page: Path, write: Write) -> None:
    spans = summary.symbol_spans(read_manifest())
    assert "cudnnRNNForwardTraining" in spans["8.8 to 8.9"]
    assert "cudnnRNNForward" in next(names for words, names in spans.items() if "8.8 to 9" in words)
    for text in (
        page.read_text(encoding="utf-8"),
        markdown(write, record("a", "3 2 - -", *usual())),
    ):
        assert "cudnnRNNForwardTraining" in text


def test_the_page_of_the_project_is_what_its_records_say(tmp_path: Path) -> None:
    folders = sorted(each for each in (DOCS / "records" / "matrix").glob("*") if each.is_dir())
    paths = sorted(folders[-1].glob("*.json")) if folders else []
    if not paths:
        pytest.skip("docs/records/matrix has no record yet: `nox -s matrix` makes them")
    write_markdown(paths, tmp_path / "matrix.md")
    made = (tmp_path / "matrix.md").read_text(encoding="utf-8")
    kept = DOCS / "matrix.md"
    assert kept.exists(), "python scripts/matrix_page.py writes it"
    assert kept.read_text(encoding="utf-8") == made, "python scripts/matrix_page.py renews it"
