"""The command line."""

import sys
from importlib import metadata

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
from popcd.programs import keep_compiled_programs


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
    keep_compiled_programs()


for command in (demo, train, evaluate, diagnose, sample, reproduce, report, bench, data):
    main.add_command(command)
