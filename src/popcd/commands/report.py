"""`popcd report`."""

from pathlib import Path

import click

from popcd.commands.options import readable_errors


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file: .html, one self-contained page, or .md, pictures in a folder beside it. Default: DIRECTORY/report.html.",
)
def report(directory: Path, out: Path | None) -> None:
    """Write the results of a folder of `popcd reproduce` as a page to read.

    \b
    Examples:
      popcd report popcd-reproduction-quick
      popcd report results --out docs/reproduction.md
    """
    target = directory / "report.html" if out is None else out
    if target.suffix not in (".html", ".md"):
        raise click.BadParameter(f"{target} must end in .html or .md", param_hint="--out")
    from popcd.experiments.store import StoreError
    from popcd.files import write_atomically
    from popcd.report.document import html, write_markdown
    from popcd.report.reproduction import document

    with readable_errors(StoreError, ValueError, OSError):
        blocks = document(directory)
        if target.suffix == ".md":
            write_markdown(target, blocks)
        else:
            write_atomically(target, html("popcd: the paper's experiments, run again", blocks).encode())
    click.echo(str(target))
