"""The pages of this repository point at what is there: files, decisions, modules, tests.

A checker takes the text of pages and gives its complaints, so that each can also be shown a page it must refuse.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DECISIONS = "docs/decisions/"
MAX_WORDS = 285
"""Of a decision: half a page."""

PARTS_OF_PERFORMANCE = "docs/performance/"
PAGES_THERE = (f"{PARTS_OF_PERFORMANCE}paths.md",)
"""The other files there are parts of docs/performance.md (`make performance` takes them over), so their links begin in docs/."""

NOT_OURS = frozenset({"__pycache__", "build", "dist", "results"})

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_MENTION = re.compile(r"\bdecisions? (?P<number>\d+)", re.IGNORECASE)
_TOP = r"utuple|assignment_manager|load_monitor|sca_server|ops_sim|benchmarks|tests|docs|examples"
_BELOW = r"model|cluster|wire|store|server|client|transport|runtime|admin|local|delivery|security"
_PLACE = re.compile(rf"`(?P<path>(?:{_TOP}|{_BELOW})/[\w./*-]*)")
"""Names below `utuple/` are often said without it."""
_MODULE = re.compile(r"`(?:[\w/]*/)?(?P<name>\w+\.py)`")
NOT_TO_BE = frozenset({"utils.py", "common.py", "helpers.py"})
"""Named because nobody may call a module so."""

Pages = Mapping[str, str]
"""Texts by their path in the repository."""


@cache
def tracked() -> frozenset[str]:
    """Every file and folder of the repository, but what tools leave behind."""
    found = {"."}
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not (name.startswith(".") or name in NOT_OURS)]
        place = Path(folder).relative_to(ROOT)
        found.update((place / name).as_posix() for name in [*folders, *files])
    return frozenset(found)


def texts(*endings: str) -> dict[str, str]:
    names = [name for name in sorted(tracked()) if name.endswith(endings)]
    return {name: (ROOT / name).read_text() for name in names if (ROOT / name).is_file()}


def pages() -> dict[str, str]:
    """What people read. CHANGELOG.md is not among them: it may name what is gone."""
    return {name: text for name, text in texts(".md").items() if name != "CHANGELOG.md"}


def page_of(name: str) -> str:
    """The page that a file is read as, or as a part of."""
    if name.startswith(PARTS_OF_PERFORMANCE) and name not in PAGES_THERE:
        return "docs/performance.md"
    return name


def joined(folder: Path, target: str) -> str:
    """As a path from the root of the repository, without going through the file system."""
    parts: list[str] = []
    for part in (folder / target).parts:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    return "/".join(parts) or "."


def broken_links(read: Pages, there: frozenset[str]) -> Iterator[str]:
    for name, text in read.items():
        for link in _LINK.finditer(text):
            target, _, part = link["target"].partition("#")
            if re.match(r"\w+:", target):
                continue
            own = page_of(name)
            page = joined(Path(own).parent, target) if target else own
            if target and page not in there:
                yield f"{name}: the link to {target} leads nowhere"
            elif part and page in read and part not in anchors(read[page]):
                yield f"{name}: there is no part #{part} of {page}"


def anchors(text: str) -> set[str]:
    """Of headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def missing_places(read: Pages, there: frozenset[str]) -> Iterator[str]:
    """What a page names as a path of the repository, in backquotes. `NAME` stands for any name, and so does a star."""
    for name, text in read.items():
        for place in _PLACE.finditer(text):
            path = place["path"].rstrip("/")
            if re.search(r"[*]|NAME", path) or path.endswith("."):
                continue
            if not {path, f"{path}.py", f"utuple/{path}", f"utuple/{path}.py"} & there:
                yield f"{name}: there is no {path}"


def missing_modules(read: Pages, there: frozenset[str]) -> Iterator[str]:
    """A module that is named without its folder is somewhere: one that was renamed is noticed."""
    names = {name.rpartition("/")[2] for name in there}
    for page, text in read.items():
        for module in _MODULE.finditer(text):
            is_saved = f" file={module['name']}\n" in text  # by whoever follows the page
            if module["name"] not in names and module["name"] not in NOT_TO_BE and not is_saved:
                yield f"{page}: there is no {module['name']}"


def wrong_numbering(names: list[str]) -> Iterator[str]:
    """Decisions are numbered from 1, each number once."""
    numbers = [int(name[:4]) for name in names]
    for place, number in enumerate(sorted(numbers), 1):
        if number != place:
            yield f"decision {place} is missing, or {number} is there twice"
            return


PAPER = (
    *(
        "3.1",
        "3.2",
        "3.3",
        "3.4",
        "3.5",
        "3.6",
        "4.1.1",
        "4.1.2",
        "4.1.3",
        "4.2",
        "A.1",
        "A.2",
        "A.3",
    ),
    *(f"figure {number}" for number in range(1, 10)),
    *("table 1", "table 2", "step 3", "step 5"),
)
"""Sections, figures, tables and rules of paper 001 that ask for something."""


def incomplete_paper(page: str) -> Iterator[str]:
    """Each is on the page; each row names where it is and what holds it."""
    said = _spelled_out(page)
    for part in PAPER:
        if not re.search(rf"(?<![\w.]){re.escape(part)}(?![\w]|\.\d)", said):
            yield f"nothing is said of {part}"
    for row in re.findall(r"^\| (?!the paper|---)(.*) \|", page, re.MULTILINE):
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) != 4 or not all(cells[:3]):
            yield f"a row without module, test or place for departures: {row[:60]}"


def _spelled_out(page: str) -> str:
    """ "Figures 6 and 7" names both; "sections 3.4 to 3.6" names three."""
    said = page.lower().replace("a.", "A.")
    for one, other in re.findall(r"figures (\d) and (\d)", said):
        said += f" figure {one} figure {other}"
    for first, last in re.findall(r"figures (\d) to (\d)", said):
        said += "".join(f" figure {n}" for n in range(int(first), int(last) + 1))
    return said


def decisions() -> dict[str, str]:
    found = texts(".md")
    return {
        name.removeprefix(DECISIONS): text
        for name, text in found.items()
        if name.startswith(DECISIONS) and not name.endswith("README.md")
    }


def wrong_decisions(given: Pages, index: str) -> Iterator[str]:
    for name, text in given.items():
        title = text.partition("\n")[0]
        if not title.startswith(f"# {int(name[:4])}. "):
            yield f"{name}: its title begins with its number, not {title[:20]!r}"
        if len(text.split()) > MAX_WORDS:
            yield f"{name}: {len(text.split())} words, half a page has {MAX_WORDS}"
        if f"]({name})" not in index:
            yield f"{name}: not in the index of docs/decisions/README.md"


def unknown_decisions(read: Pages, last: int) -> Iterator[str]:
    for name, text in read.items():
        for mention in _MENTION.finditer(text):
            if not 1 <= int(mention["number"]) <= last:
                yield f"{name}: there is no {mention[0]}"


def test_every_link_of_a_page_leads_to_a_file() -> None:
    assert not list(broken_links(pages(), tracked()))


def test_every_path_a_page_names_is_there() -> None:
    assert not list(missing_places(pages(), tracked()))


def test_every_module_a_page_names_is_there() -> None:
    assert not list(missing_modules(pages(), tracked()))


def missing_parts(docstring: str, parts: set[str]) -> list[str]:
    """A folder's docstring lists its parts, their names first: `name, name   what they are`."""
    listed = re.findall(r"^ *((?:\w+/?)(?:, \w+/?)*) {2,}\S", docstring, re.MULTILINE)
    named = {name.rstrip("/") for names in listed for name in names.split(", ")}
    return sorted(named - parts)


def test_folders_name_parts_that_are_there() -> None:
    complaints = []
    for name, text in texts("/__init__.py").items():
        folder = (ROOT / name).parent
        parts = {part.stem for part in folder.iterdir()}
        gone = missing_parts(ast.get_docstring(ast.parse(text)) or "", parts)
        complaints += [f"{name}: there is no {part}" for part in gone]
    assert not complaints


def test_a_part_of_a_folder_that_is_gone_is_found() -> None:
    docstring = (
        "An idea.\n\n    one, two     what they do\n    three/   more\n\nData passes through."
    )
    assert missing_parts(docstring, {"one", "three"}) == ["two"]


def unknown_mutants(page: str, sources: str) -> Iterator[str]:
    """What docs/moving.md has in quotation marks is the name of a mutant."""
    for quoted in re.findall(r'"([^"]+)"', page):
        name = " ".join(quoted.split())
        if f'"{name}":' not in sources:
            yield f"there is no mutant {name!r}"


def test_every_mutant_the_page_on_moves_names_is_there() -> None:
    kept = "tests/virtual/mutants/"
    sources = [text for name, text in texts(".py").items() if name.startswith(kept)]
    assert not list(unknown_mutants((ROOT / "docs/moving.md").read_text(), "\n".join(sources)))


def test_decisions_are_numbered_from_1_without_gap_or_double() -> None:
    names = list(decisions())
    assert names
    assert not list(wrong_numbering(names))


def test_decisions_have_their_number_half_a_page_and_a_line_in_the_index() -> None:
    assert not list(wrong_decisions(decisions(), (ROOT / DECISIONS / "README.md").read_text()))


def test_every_decision_that_is_mentioned_is_there() -> None:
    read = texts(".py", ".md", ".proto", "Makefile", ".toml")
    others = {name: text for name, text in read.items() if name != "tests/test_docs.py"}
    assert not list(unknown_decisions(others, len(decisions())))


def test_the_page_of_the_paper_names_every_section_figure_table_and_rule() -> None:
    assert not list(incomplete_paper((ROOT / "docs/paper.md").read_text()))


@pytest.mark.parametrize("part", PAPER)
def test_a_page_without_one_of_them_is_refused(part: str) -> None:
    rest = " ".join(other for other in PAPER if other != part)
    assert list(incomplete_paper(rest)) == [f"nothing is said of {part}"]


def test_a_row_of_the_paper_without_its_test_is_refused() -> None:
    assert list(incomplete_paper(" ".join(PAPER) + "\n| 3.3: a thing | `here.py` |  |  |\n"))


# --- each of them refuses what it must -----------------------------------------------------------------

THERE = frozenset({"docs", "docs/here.md", "docs/decisions/0001-one.md", "utuple/model/match.py"})


@pytest.mark.parametrize(
    ("name", "text", "complaints"),
    [
        ("docs/page.md", "# A part\n[a](here.md) [b](here.md#x) [c](https://a.b) [d](#a-part)", 0),
        ("docs/page.md", "# A part\n[gone](#b-part)", 1),
        ("README.md", "[a](docs/here.md), [b](docs/)", 0),
        ("docs/decisions/0001-one.md", "[up](../here.md)", 0),
        ("docs/performance/read.md", "[as docs/performance.md has it](here.md)", 0),
        ("docs/performance/paths.md", "[a page of its own](here.md)", 1),
        ("docs/page.md", "[gone](gone.md), [wrong folder](docs/here.md)", 2),
    ],
)
def test_a_link_that_leads_nowhere_is_found(name: str, text: str, complaints: int) -> None:
    assert len(list(broken_links({name: text}, THERE))) == complaints


def test_a_path_that_is_gone_is_found() -> None:
    text = "`utuple/model/match.py`, `utuple/model/match`, `utuple/*.py`, `tests/unit/NAME/`, `utuple/model/gone.py`"
    assert list(missing_places({"p.md": text}, THERE)) == ["p.md: there is no utuple/model/gone.py"]


def test_a_mutant_that_is_gone_is_found() -> None:
    sources = '    "R5 not kept": r5_not_kept,'
    assert not list(unknown_mutants('See "R5 not\nkept".', sources))
    assert list(unknown_mutants('"R6 not kept"', sources)) == ["there is no mutant 'R6 not kept'"]


def test_a_module_that_was_renamed_is_found() -> None:
    text = "`match.py`, `model/match.py`, `utils.py`, `store/inserting.py`"
    assert list(missing_modules({"p.md": text}, THERE)) == ["p.md: there is no inserting.py"]


@pytest.mark.parametrize(
    ("names", "is_right"),
    [
        (["0001-a.md", "0002-b.md"], True),
        (["0001-a.md", "0003-b.md"], False),
        (["0001-a.md", "0001-b.md"], False),
        (["0002-a.md"], False),
    ],
)
def test_a_gap_or_a_double_number_is_found(names: list[str], is_right: bool) -> None:
    assert (not list(wrong_numbering(names))) is is_right


def test_a_decision_with_another_number_too_long_or_not_in_the_index_is_found() -> None:
    given = {"0001-a.md": "# 2. Other\n", "0002-b.md": "# 2. Long\n" + "word " * MAX_WORDS}
    found = list(wrong_decisions(given, "[a](0001-a.md)"))
    assert [complaint.partition(":")[0] for complaint in found] == ["0001-a.md", *["0002-b.md"] * 2]


def test_a_decision_that_is_not_there_is_found_in_code_and_in_pages() -> None:
    read = {
        "a.py": '"""(decision 7)"""',
        "b.md": "Decision 8, [decision 9](x.md)",
        "c.py": "4 decisions",
    }
    assert list(unknown_decisions(read, 8)) == ["b.md: there is no decision 9"]
