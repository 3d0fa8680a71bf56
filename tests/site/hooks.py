"""MkDocs's hooks: what lies beside docs/ becomes pages, and links to it lead there. Nothing is linked that is not in the site."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Of the repository's root, and what they are called in the site."""
EXAMPLES = "examples.md"
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)\s#]+)(?=[)#])")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^```(\w+) file=(\S+)$", re.MULTILINE)
"""A snippet that is saved in a file, which the tests of pages know by this."""
_PART = re.compile(r'aria-labelledby="__nav_(\d+)_label"')
_LANGUAGES = {".py": "python", ".toml": "toml", ".ipynb": "json"}


def place_of(target: str) -> str:
    """Where in the site a path of the repository is shown."""
    target = normpath(target)
    if target in PAGES:
        return PAGES[target]
    if target == "docs":
        return "index.md"
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if PurePosixPath(target).parts[0] == "examples":
        return EXAMPLES
    return f"source/{target}.md"


def rewritten(text: str, own: str) -> str:
    """The links of one page of the repository, as they are in the site."""

    def link(found: re.Match[str]) -> str:
        target = normpath(PurePosixPath(own).parent / found[1])
        return relpath(place_of(target), PurePosixPath(place_of(own)).parent.as_posix() or ".")

    parts = _FENCED.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def linked_sources() -> set[str]:
    """Files and folders outside docs/ that pages link to."""
    pages = [*ROOT.glob("docs/**/*.md"), *(ROOT / name for name in PAGES)]
    found = set()
    for page in pages:
        own = page.relative_to(ROOT).as_posix()
        for link in _LINK.findall("".join(_FENCED.split(page.read_text("utf-8"))[::2])):
            target = normpath(PurePosixPath(own).parent / link)
            if place_of(target).startswith("source/"):
                found.add(target)
    return found


def shown(path: Path) -> str:
    """A file as it is."""
    language = _LANGUAGES.get(path.suffix, "text")
    return f"~~~~{language}\n{path.read_text('utf-8').rstrip()}\n~~~~\n"


def source_page(target: str) -> str:
    place = ROOT / target
    if place.is_dir():
        files = sorted(one for one in place.iterdir() if one.suffix in _LANGUAGES)
        return f"# {target}\n\n" + "\n".join(f"## {one.name}\n\n{shown(one)}" for one in files)
    return f"# {target}\n\n{shown(place)}"


def examples_page() -> str:
    said = "# Examples\n\nPrograms in `examples/`, each run by a test against a real cluster.\n"
    for place in sorted((ROOT / "examples").glob("*.py")):
        said += f"\n## {place.stem}\n\n{shown(place)}"
    return said


def on_files(files: Files, config: Any) -> Files:
    made = {PAGES[name]: rewritten((ROOT / name).read_text("utf-8"), name) for name in PAGES}
    made[EXAMPLES] = examples_page()
    made |= {place_of(target): source_page(target) for target in linked_sources()}
    mark = (ROOT / "utuple/doors/http/console/mark.svg").read_text("utf-8")
    made["mark.svg"] = mark
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Pages of docs/ as they are, but for links that lead out of it."""
    if page.file.generated_by is not None:
        return markdown
    named = _NAMED.sub(r'```\1 title="\2"', markdown)
    return rewritten(named, f"docs/{page.file.src_uri}")


def on_post_page(output: str, page: Any, config: Any) -> str:
    """What the theme leaves out for people who use a keyboard or a screen reader."""
    output = output.replace("<th></th>", "<td></td>").replace("<pre>", '<pre tabindex="0">')
    output = output.replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)
    return _PART.sub(r'aria-label="Pages of part \1"', output)


def on_post_build(config: Any) -> None:
    """A page for addresses that are not there asks for its styles by absolute paths, which a folder has not."""
    (Path(config["site_dir"]) / "404.html").unlink(missing_ok=True)
