"""`popcd report`."""

from pathlib import Path

import click

from popcd.commands.options import as_json, image_shape, print_result, readable_errors


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file: .html, one self-contained page, or .md, pictures in a folder beside it. Default: DIRECTORY/report.html.",
)
@image_shape("Of a run on images: their shape, where it cannot be guessed.")
@as_json
def report(directory: Path, out: Path | None, shape: tuple[int, int] | None, as_json: bool) -> None:
    """Write the results in DIRECTORY, of `popcd reproduce` or of `popcd train`, as a page to read.

    \b
    Examples:
      popcd report popcd-reproduction-quick
      popcd report results --out docs/reproduction.md
      popcd report runs/a --image 16x8
    """
    target = directory / "report.html" if out is None else out
    if target.suffix not in (".html", ".md"):
        raise click.BadParameter(f"{target} must end in .html or .md", param_hint="--out")
    from popcd.experiments.store import StoreError
    from popcd.files import write_atomically
    from popcd.report import reproduction, run
    from popcd.report.document import html, write_markdown

    with readable_errors(StoreError, ValueError, OSError):
        is_run = (directory / "run.json").exists()
        blocks = run.document(directory, shape) if is_run else reproduction.document(directory)
        if target.suffix == ".md":
            write_markdown(target, blocks)
        else:
            title = f"popcd: {directory.name}" if is_run else "popcd: the paper's experiments, run again"
            write_atomically(target, html(title, blocks).encode())
    print_result({"directory": str(directory), "files": [str(target)]}, as_json, lambda result: result["files"][0])
