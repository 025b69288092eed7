"""Pages of the site that lie outside docs/, and the links to them, which on GitHub lead out of the folder by "../". Also, what
the theme would have the reader's browser fetch from elsewhere comes from the site itself."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
SHIM = "https://unpkg.com/iframe-worker/shim"  # what the plugin `offline` asks for
OUTSIDE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/results/*.md", "benchmarks/results/*.png")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, at the same place from the root of the site as from that of the repository."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Turn links between pages of docs/ and pages outside it into links of the site."""
    folder = posixpath.dirname(page.file.src_uri)
    outside = not Path(page.file.abs_src_path or "").is_relative_to(ROOT / "docs")

    def inside(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("" if outside else "docs", folder, link[1]))
        target = target.removeprefix("docs/") if outside else target
        if files.get_file_from_path(target) is None:
            return link[0]
        return f"]({posixpath.relpath(target, folder or '.')}"

    return re.sub(r"\]\(((?:\.\./)+[^)#\s]+|docs/[^)#\s]+)", inside, markdown)


def on_post_page(output: str, page: Page, config: Any) -> str:
    """Search without the network: assets/worker.js in place of the shim."""
    output = output.replace(SHIM, "../" * page.url.count("/") + "assets/worker.js")
    if asked := re.search(r'<(?:script|img|iframe|link)[^>]* (?:src|href)="https?://[^"]*', output):
        raise PluginError(f"{page.file.src_uri} would ask the network: {asked[0]}")
    return output


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """The same for the page that says that there is no page."""
    return output.replace(SHIM, "/assets/worker.js")
