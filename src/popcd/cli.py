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


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"popcd {popcd.__version__} (jax {metadata.version('jax')}, Python {sys.version.split()[0]})")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show versions and exit.")
def main() -> None:
    """Restricted Boltzmann Machines with gradients and log-likelihoods that can be trusted."""


for command in (demo, train, evaluate, diagnose, sample, reproduce, report, bench, data):
    main.add_command(command)
