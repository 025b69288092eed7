"""Language of source and pages: docstrings open with a noun phrase or an imperative, in plain technical English.

DONE has all packages, and PAGES all pages. CONTRIBUTING.md has the rules for names.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

import artigrad

ROOT = Path(artigrad.__file__).parent
REPOSITORY = ROOT.parent.parent
FOLDERS = ("benchmarks", "examples", "experiments", "tests")


def parts(folder, *nested):
    """Paths of the modules and packages of a folder, relative to ROOT; `nested` packages are listed separately."""
    found = sorted(p for p in (ROOT / folder).iterdir() if p.suffix == ".py" or (p / "__init__.py").exists())
    return [name for p in found if (name := p.relative_to(ROOT).as_posix()) not in nested]


DONE = (
    *parts("", "physics"),
    *parts("physics", "physics/constraints"),
    *parts("physics/constraints"),
    *FOLDERS,
)
PAGES = [
    page.relative_to(REPOSITORY).as_posix()
    for page in (
        *REPOSITORY.glob("*.md"),
        *sorted((REPOSITORY / "benchmarks").rglob("*.md")),
        *sorted((REPOSITORY / "docs").rglob("*.md")),
    )
]

# a free relative, a phrase without its noun, or a verb in the third person, in place of a noun or an imperative
OPENINGS = re.compile(
    r"(What|Whatever|Whether|Where|Wherever|How|Which|Whose|When|Who|Whoever|Of|The same|Those|That of|That which|"
    r"See the head of|From|By|As|So many|Also|Until|Adds|Collects|Computes|Does|Fills|Finds|Gives|Has|Holds|Keeps|"
    r"Looks|Makes|Picks|Puts|Reads|Takes|Writes)\b"
)
# code returns, raises, stores and computes; it does not speak, look, feel or want
DENIED = re.compile(
    r"\b(told|tells?|said|says|say|asked|answers?|speaks?|looks?|looked|feels?|felt|wants|knows|goes on|go on|going on|"
    r"gone on|what is (left|known|wanted|asked|there)|of its own|of their own|nobody|whoever|in silence|so (many|much)|"
    r"no numbers?|way back|pictures?|films?|centres?|colours?|behaviours?|neighbours?|"
    r"\w+(?:ptimis|ormalis|ectoris|inimis)\w+)\b",
    re.IGNORECASE,
)


def docstrings(tree):
    """Docstrings of a module with the line where each begins."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            yield node.body[0].lineno, ast.get_docstring(node)


def texts(source):
    """Docstrings without quoted code, comments and messages of a module, with their lines."""
    tree = ast.parse(source)
    yield from ((line, re.sub(r"`[^`]*`", "", text)) for line, text in docstrings(tree))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.Call):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value:
                    yield part.lineno, part.value


def files(name):
    """Source files of a package, a module or a folder, without this one, which lists the denied words."""
    path = REPOSITORY / name if name in FOLDERS else ROOT / name
    found = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [file for file in found if file != Path(__file__)]


@pytest.mark.parametrize("name", DONE)
def test_docstrings_open_with_a_noun_phrase_or_an_imperative(name):
    assert files(name)
    found = [
        f"{file.relative_to(REPOSITORY)}:{line}: {text.splitlines()[0]}"
        for file in files(name)
        for line, text in docstrings(ast.parse(file.read_text()))
        if OPENINGS.match(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", DONE)
def test_texts_use_plain_words(name):
    found = {
        f"{file.relative_to(REPOSITORY)}:{line}: '{match[0]}' in {text[max(0, match.start() - 40) : match.end() + 40]!r}"
        for file in files(name)
        for line, text in texts(file.read_text())
        for match in DENIED.finditer(text)
    }
    assert not found, "\n".join(sorted(found))


@pytest.mark.parametrize("page", PAGES)
def test_pages_use_plain_words(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (REPOSITORY / page).read_text(), flags=re.DOTALL)
    found = [f"'{m[0]}' in {text[max(0, m.start() - 40) : m.end() + 40]!r}" for m in DENIED.finditer(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["What has an engine.", "Of all points of two solids.", "Adds to the cotangents."])
def test_denied_openings_are_found(text):
    assert OPENINGS.match(text)


@pytest.mark.parametrize("text", ["unless told", "looked at", "the run goes on", "it optimises", "no numbers"])
def test_denied_words_are_found(text):
    assert DENIED.search(text)
