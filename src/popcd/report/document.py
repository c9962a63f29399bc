"""A report as a list of blocks, written as one self-contained HTML page or as Markdown with pictures beside it."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

from popcd.experiments.claims import FAILS, HOLDS, NOT_RUN, PARTLY, UNDECIDED, Verdict
from popcd.files import write_atomically


@dataclass(frozen=True)
class Heading:
    """A heading of level 1 to 3."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """Paragraphs, separated by empty lines; lines that begin with "- " are a list."""

    text: str


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; all columns but the first `left` are numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


@dataclass(frozen=True)
class Picture:
    """A PNG image with a file name and what it shows in words."""

    name: str
    png: bytes
    caption: str


@dataclass(frozen=True)
class Checklist:
    """Claims and what became of them."""

    verdicts: Sequence[Verdict]


Block = Heading | Text | Table | Picture | Checklist

_MARKS = {HOLDS: "✓", PARTLY: "◐", FAILS: "✗", UNDECIDED: "?", NOT_RUN: "○"}
_CLASSES = {HOLDS: "yes", PARTLY: "part", FAILS: "no", UNDECIDED: "part", NOT_RUN: "none"}
_CSS = """
:root { color-scheme: light dark; --text: #1b1b1b; --back: #fdfdfc; --soft: #6a6a6a; --line: #d9d9d6; --card: #f3f3f0;
  --yes: #00694b; --part: #8a5a00; --no: #b23a00; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e6; --back: #161718; --soft: #a5a5a2; --line: #3a3b3d;
  --card: #202224; --yes: #3fd0a0; --part: #f0b93a; --no: #ff8f5a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 64rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.4rem; border-bottom: 1px solid var(--line); }
figure { margin: 1rem 0; } figure img { width: 100%; height: auto; background: #fff; border-radius: 6px; }
figure.small { display: inline-block; width: min(100%, 23rem); margin: .4rem .6rem .4rem 0; vertical-align: top; }
figcaption { color: var(--soft); font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th.left, td.left { text-align: left; }
ol.claims { list-style: none; padding: 0; } ol.claims li { background: var(--card); border-radius: 6px; padding: .6rem .8rem;
  margin: .5rem 0; } ol.claims p { margin: .2rem 0 0; color: var(--soft); font-size: .88rem; }
.verdict { font-weight: 600; } .yes { color: var(--yes); } .part { color: var(--part); } .no { color: var(--no); }
.none { color: var(--soft); }
"""


def html(title: str, blocks: Sequence[Block]) -> str:
    """One page that needs no network and no other file."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>{_CSS}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Text(text):
            return "\n".join(_paragraph(part) for part in text.strip().split("\n\n"))
        case Table(columns, rows, left):
            head = _cells("th", columns, left)
            lines = "\n".join(f"<tr>{_cells('td', row, left)}</tr>" for row in rows)
            return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>{lines}</tbody>\n</table></div>'
        case Picture(name, png, caption):
            kind = "small" if name.startswith("tiles-") else "large"
            source = base64.b64encode(png).decode()
            image = f'<img alt="{escape(caption)}" src="data:image/png;base64,{source}">'
            return f'<figure class="{kind}">{image}<figcaption>{escape(caption)}</figcaption></figure>'
        case Checklist(verdicts):
            return '<ol class="claims">\n' + "\n".join(_claim(v) for v in verdicts) + "\n</ol>"


def _paragraph(text: str) -> str:
    lines = text.split("\n")
    if all(line.startswith("- ") for line in lines):
        return "<ul>" + "".join(f"<li>{escape(line[2:])}</li>" for line in lines) + "</ul>"
    return f"<p>{escape(' '.join(lines))}</p>"


def _cells(tag: str, values: Sequence[str], left: int) -> str:
    return "".join(f"<{tag}{' class=left' if i < left else ''}>{escape(value)}</{tag}>" for i, value in enumerate(values))


def _claim(verdict: Verdict) -> str:
    mark = f'<span class="verdict {_CLASSES[verdict.verdict]}">{_MARKS[verdict.verdict]} {verdict.verdict}</span>'
    measured = "".join(f"<p>{escape(words)}</p>" for words in verdict.measured)
    return f"<li>{mark}: {escape(verdict.claim)} ({escape(verdict.source)}){measured}</li>"


def write_markdown(path: Path, blocks: Sequence[Block]) -> None:
    """The same report as Markdown; pictures go into a folder beside it that has the name of the file."""
    for block in blocks:
        if isinstance(block, Picture):
            write_atomically(path.parent / path.stem / f"{block.name}.png", block.png)
    text = "\n\n".join(_markdown(block, path.stem) for block in blocks)
    write_atomically(path, (text + "\n").encode())


def _markdown(block: Block, folder: str) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Text(text):
            return text.strip()
        case Table(columns, rows, left):
            rule = ["---" if i < left else "---:" for i in range(len(columns))]
            return "\n".join(
                f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in (columns, rule, *rows)
            )
        case Picture(name, _, caption):
            return f"![{caption}]({quote(folder)}/{name}.png)\n\n{caption}"
        case Checklist(verdicts):
            rows = [(v.claim, v.source, f"{_MARKS[v.verdict]} {v.verdict}", "<br>".join(v.measured)) for v in verdicts]
            return _markdown(Table(("the paper says", "where", "here", "measured"), rows, left=4), folder)
