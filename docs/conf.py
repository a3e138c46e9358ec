"""
How the documentation's pages become a site: `make docs`.

The pages are plain Markdown and read well where they are. What the repository keeps next to docs/ (the architecture,
the rules for changing it, the changelog, the examples' own page) is shown in the site by pages that only name it: its
text replaces theirs, and links to it lead there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
SHOWN_BY = {
    ROOT / "ARCHITECTURE.md": "project/architecture",
    ROOT / "CONTRIBUTING.md": "project/contributing",
    ROOT / "CHANGELOG.md": "project/changelog",
    ROOT / "SECURITY.md": "project/security",
    ROOT / "examples/README.md": "tutorials/examples/index",
    **{page: f"tutorials/examples/{page.parent.name}" for page in ROOT.glob("examples/agents/*/README.md")},
    ROOT / "README.md": "index",
}
_LINK = re.compile(r"\]\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")

project = "Trunkline"
author = "The Trunkline authors"
copyright = author  # noqa: A001 - Sphinx reads it by this name
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = True

myst_heading_anchors = 4
# In texts "1.0" and "--flag" mean what they say.
smartquotes = False

html_theme = "furo"
html_title = "Trunkline"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5c6b", "color-brand-content": "#0b5c6b"},
    "dark_css_variables": {"color-brand-primary": "#6fc7d6", "color-brand-content": "#6fc7d6"},
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True


def read_page(_: Sphinx, name: str, source: list[str]) -> None:
    """The text of a page as the site has it."""
    page = DOCS / f"{name}.md"
    shown = next((file for file, place in SHOWN_BY.items() if place == name and name != "index"), page)
    text = source[0] if shown == page else shown.read_text()
    source[0] = _LINK.sub(lambda link: _leading_from(page, shown, link), text)


def _leading_from(page: Path, written_in: Path, link: re.Match[str]) -> str:
    target = Path(os.path.normpath(written_in.parent / link["path"]))
    if target.is_dir():
        target /= "README.md"
    if target in SHOWN_BY:
        target = DOCS / f"{SHOWN_BY[target]}.md"
    return f"]({os.path.relpath(target, page.parent)}{link['anchor'] or ''})"


def setup(app: Sphinx) -> None:
    app.connect("source-read", read_page)
