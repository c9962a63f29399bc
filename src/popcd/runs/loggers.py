"""Where metrics go besides the run's own file; each service is imported only when it is asked for."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from popcd.foreign import FileError

NAMES = ("tensorboard", "wandb", "mlflow")
Log = Callable[[int, dict[str, float]], None]


def loggers(names: Sequence[str], folder: Path, settings: dict[str, Any]) -> Callable[[ExitStack, str], list[Log]]:
    """Imports the services at once; the result, called with a stack that will close them and a name of the run that is its
    own, has one function of each. A resumed run continues its curves.
    """
    makers = {"tensorboard": (_tensorboard, "tensorboardX"), "wandb": (_wandb, "wandb"), "mlflow": (_mlflow, "mlflow")}
    found = [(makers[name][0], _imported(makers[name][1], name)) for name in names]
    return lambda stack, identity: [make(module, stack, folder, settings, identity) for make, module in found]


def _tensorboard(tensorboard: Any, stack: ExitStack, folder: Path, settings: dict[str, Any], identity: str) -> Log:
    writer = tensorboard.SummaryWriter(str(folder / "tensorboard"))
    stack.callback(writer.close)

    def log(step: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)

    return log


def _wandb(wandb: Any, stack: ExitStack, folder: Path, settings: dict[str, Any], identity: str) -> Log:
    run = wandb.init(project="popcd", name=folder.name, dir=str(folder), config=settings, id=identity, resume="allow")
    stack.callback(run.finish)
    return lambda step, metrics: run.log(metrics, step=step)


def _mlflow(mlflow: Any, stack: ExitStack, folder: Path, settings: dict[str, Any], identity: str) -> Log:
    mlflow.set_experiment("popcd")
    begun = mlflow.search_runs(filter_string=f"tags.popcd = '{identity}'", output_format="list")
    known = begun[0].info.run_id if begun else None
    mlflow.start_run(run_id=known, run_name=folder.name, tags={"popcd": identity})
    stack.callback(mlflow.end_run)
    mlflow.log_params(settings)
    return lambda step, metrics: mlflow.log_metrics(metrics, step=step)


def _imported(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise FileError(f"--log {extra} needs {module}: pip install 'popcd[{extra}]'") from error
