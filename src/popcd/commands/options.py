"""Options and errors that commands share."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")


def out_folder(default: str | None = None, words: str = "Folder for the results.") -> Callable[..., Any]:
    """--out, a folder."""
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=None if default is None else Path(default),
        show_default=default or True,
        help=words,
    )


def image_shape(words: str) -> Callable[..., Any]:
    """--image HxW as two numbers."""

    def shape(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
        if value is None:
            return None
        height, _, width = value.partition("x")
        if not (height.isdecimal() and width.isdecimal() and int(height) and int(width)):
            raise click.BadParameter(f"{value!r} is not a shape: expected HEIGHTxWIDTH, for example 28x28")
        return int(height), int(width)

    return click.option("--image", "shape", metavar="HxW", callback=shape, help=words)


def make_folder(path: Path) -> None:
    """The folder, or a clear end."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot create the folder {path}: {error.strerror}; name another with --out") from error


@contextmanager
def readable_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds end the command with their words and exit code 1."""
    try:
        yield
    except kinds as error:
        raise click.ClickException(str(error)) from error


def print_result(result: dict[str, Any], as_json: bool, table: Callable[[dict[str, Any]], str]) -> None:
    """One JSON object, or a table for people, on standard output."""
    click.echo(json.dumps(_strict(result), allow_nan=False) if as_json else table(result))


def _strict(value: Any) -> Any:
    """JSON has neither NaN nor infinities: null stands for them."""
    if isinstance(value, dict):
        return {name: _strict(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
