"""Progress on standard error: a bar on a terminal, plain lines elsewhere, nothing when asked."""

import shutil
import sys
import time
from types import TracebackType
from typing import Any

import click

quiet = click.option("--quiet", "-q", "silent", is_flag=True, help="No progress.")
_WIDTH, _REDRAW, _LINE_EVERY = 20, 0.1, 30.0
_SHOWN = (
    "log_likelihood",
    "pseudo_log_likelihood",
    "test_log_likelihood",
    "test_pseudo_log_likelihood",
    "ess",
    "gradient_norm",
)
_SHORT = {"log_likelihood": "ll", "pseudo_log_likelihood": "pll", "gradient_norm": "|g|"}


def tell(words: str) -> None:
    """A line for people that is no result."""
    click.echo(words, err=True)


class Progress:
    """How far a piece of work is: part, rate, time left, and words such as the newest metrics.

    Rate and time left count from the first report on, so a resumed run does not claim what was done before.
    """

    def __init__(self, label: str, length: float, silent: bool = False, unit: str = ""):
        self._label, self._length, self._silent, self._unit = label, length, silent, unit
        self._terminal = sys.stderr.isatty()
        self._first: tuple[float, float] | None = None
        self._drawn = self._lined = 0.0
        self._words = ""

    def __enter__(self) -> "Progress":
        if self._terminal and not self._silent:  # a sign of life while data are read and programs compiled
            self._drawn = time.monotonic()
            click.echo(f"{self._label} ...", err=True, nl=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._terminal and self._drawn:
            click.echo("", err=True)

    def at(self, done: float, words: str | None = None) -> None:
        """`done` of the length are done; `words` stay until others come."""
        now = time.monotonic()
        self._first = self._first or (now, done)
        new = words is not None and words != self._words
        self._words = self._words if words is None else words
        ended = done >= self._length
        if self._silent:
            return
        if self._terminal and (ended or now - self._drawn >= _REDRAW):
            self._drawn = now
            columns = shutil.get_terminal_size().columns - 1
            click.echo(f"\r{self._line(now, done)[:columns]:<{columns}}", err=True, nl=False)
        elif not self._terminal and (new or ended or now - self._lined >= _LINE_EVERY):
            self._lined = now
            tell(self._line(now, done))

    def note(self, words: str) -> None:
        """A line above the bar."""
        tell(f"\r\x1b[K{words}" if self._terminal and self._drawn else words)

    def _line(self, now: float, done: float) -> str:
        assert self._first is not None
        part = min(1.0, done / self._length) if self._length else 1.0
        rate = (done - self._first[1]) / max(now - self._first[0], 1e-9)
        left = (self._length - done) / rate if rate > 0 else None
        bar = "#" * round(_WIDTH * part) + "-" * (_WIDTH - round(_WIDTH * part))
        fields = [f"{self._label} [{bar}] {part:4.0%}" if self._terminal else f"{self._label} {part:.0%}"]
        if self._unit:
            fields += [f"{done:,.0f}/{self._length:,.0f}", f"{rate:,.0f} {self._unit}/s" if rate > 0 else ""]
        fields += [f"{clock(left)} left" if left is not None and done < self._length else "", self._words]
        return "  ".join(field for field in fields if field)


def clock(seconds: float) -> str:
    """A duration for people.

    >>> clock(7), clock(3700), clock(200000)
    ('0:07', '1:01:40', '2 days 7:33:20')
    """
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    hours, minutes, left = rest // 3600, rest // 60 % 60, rest % 60
    time_of_day = f"{hours}:{minutes:02d}:{left:02d}" if hours or days else f"{minutes}:{left:02d}"
    return f"{days} days {time_of_day}" if days else time_of_day


def metrics_words(row: dict[str, Any]) -> str:
    """The metrics that people watch, in few characters.

    >>> metrics_words({"step": 1, "log_likelihood": -3.41, "ess": 31.2, "largest_weight": 0.1})
    'll -3.41  ess 31.2'
    """
    found = []
    for name in _SHOWN:
        if name in row:
            short = _SHORT.get(name.removeprefix("test_"), name)
            found.append(f"{'test ' if name.startswith('test_') else ''}{short} {row[name]:.4g}")
    return "  ".join(found)
