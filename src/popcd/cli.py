"""The command line."""

import os
import sys
from importlib import metadata
from pathlib import Path

import click

import popcd
from popcd.commands.bench import bench
from popcd.commands.data import data
from popcd.commands.demo import demo
from popcd.commands.diagnose import diagnose
from popcd.commands.evaluate import evaluate
from popcd.commands.report import report
from popcd.commands.reproduce import reproduce
from popcd.commands.sample import sample
from popcd.commands.train import train


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        import jax

        device = jax.devices()[0]
        kind = device.device_kind if device.platform != "cpu" else "CPU"
        versions = f"jax {metadata.version('jax')}, {len(jax.devices())} x {kind}, Python {sys.version.split()[0]}"
        click.echo(f"popcd {popcd.__version__} ({versions})")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show versions and exit.")
def main() -> None:
    """Restricted Boltzmann Machines with gradients and log-likelihoods that can be trusted.

    Every command has examples in its --help. Completion of commands and options in bash (zsh and fish alike):
    eval "$(_POPCD_COMPLETE=bash_source popcd)"
    """
    _keep_compiled_programs()


def _keep_compiled_programs() -> None:
    """Let JAX keep compiled programs in the user's cache folder, unless it was told where: the next run starts sooner.

    JAX reads these words when it is imported, which commands do later.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "popcd" / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


for command in (demo, train, evaluate, diagnose, sample, reproduce, report, bench, data):
    main.add_command(command)
