"""Pages of the site that lie outside docs/, and the links to them, which on GitHub lead out of the folder by "../"."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
OUTSIDE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/results/*.md")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, at the same place from the root of the site as from that of the repository."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Turn links that lead out of docs/ to such a page into those of the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def inside(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[1]))
        if files.get_file_from_path(target) is None:
            return link[0]
        return f"]({posixpath.relpath(target, folder or '.')}"

    return re.sub(r"\]\(((?:\.\./)+[^)#\s]+)", inside, markdown)
