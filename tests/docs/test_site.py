"""The site: it can be built without a warning, and its pages load nothing from anywhere else."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
# What a browser fetches by itself; a link that a reader may click is none of these.
_FETCHED_BY = {"src", "srcset", "data", "poster", "background"}
_IN_STYLES = re.compile(r"(?:url\(|@import)\s*['\"]?([^'\")\s;]+)")
# A namespace is a name, and nothing is fetched for it.
_SVG = "http://www.w3.org/2000/svg"
_IN_SCRIPTS = re.compile(r"['\"`]((?:https?:|wss?:)?//[\w.-]+\.\w+[^'\"`]*)")


def built_into(folder: Path) -> Path:
    """The site; a warning would be an error."""
    built = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"),
            *("-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "html")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


class LoadedResources(HTMLParser):
    """What a browser loads when it shows the page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name in _FETCHED_BY or (name == "href" and tag in {"link", "use", "image"})):
                self.addresses.append(value)
            if value and name == "style":
                self.addresses += _IN_STYLES.findall(value)


def elsewhere(addresses: list[str]) -> list[str]:
    return [
        address
        for address in addresses
        if address != _SVG and (urlsplit(address).scheme not in {"", "data"} or urlsplit(address).netloc)
    ]


# In one test, since building it is most of the work.
def test_the_site_loads_nothing_from_anywhere_else_and_its_search_knows_every_page(tmp_path: Path) -> None:
    site = built_into(tmp_path)
    found = {
        **{page: LoadedResources(page).addresses for page in site.rglob("*.html")},
        **{page: _IN_STYLES.findall(page.read_text()) for page in site.rglob("*.css")},
        **{page: _IN_STYLES.findall(page.read_text()) for page in site.rglob("*.svg")},
        **{page: _IN_SCRIPTS.findall(page.read_text()) for page in site.rglob("*.js")},
    }
    assert len(found) > 50
    assert {str(page): away for page, addresses in found.items() if (away := elsewhere(addresses))} == {}
    index = (site / "searchindex.js").read_text()
    for page in ROOT.joinpath("docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        assert (site / f"{name}.html").exists(), name
        assert f'"{name}"' in index, name


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<p style="background: url(http://a.example/b.png)">',
    ],
)
def test_a_page_that_loads_something_from_elsewhere_would_be_noticed(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(f'{text}<a href="https://example.org">a link</a>')
    assert len(elsewhere(LoadedResources(page).addresses)) == 1
