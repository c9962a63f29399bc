"""Where metrics go besides the run's own file; each service is imported only when it is asked for."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from popcd.foreign import FileError

NAMES = ("tensorboard", "wandb", "mlflow")
Log = Callable[[int, dict[str, float]], None]


def loggers(names: Sequence[str], folder: Path, settings: dict[str, Any]) -> Callable[[ExitStack], list[Log]]:
    """Imports the services at once; the result, called with a stack that will close them, has one function of each."""
    makers = {"tensorboard": (_tensorboard, "tensorboardX"), "wandb": (_wandb, "wandb"), "mlflow": (_mlflow, "mlflow")}
    found = [(makers[name][0], _imported(makers[name][1], name)) for name in names]
    return lambda stack: [make(module, stack, folder, settings) for make, module in found]


def no_loggers(_: ExitStack) -> list[Log]:
    """Metrics go to the run's own file only."""
    return []


def _tensorboard(tensorboard: Any, stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    writer = tensorboard.SummaryWriter(str(folder / "tensorboard"))
    stack.callback(writer.close)

    def log(step: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)

    return log


def _wandb(wandb: Any, stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    # The same folder is the same run, so that a resumed one continues its curves
    run = wandb.init(project="popcd", dir=str(folder), config=settings, id=folder.name, resume="allow")
    stack.callback(run.finish)
    return lambda step, metrics: run.log(metrics, step=step)


def _mlflow(mlflow: Any, stack: ExitStack, folder: Path, settings: dict[str, Any]) -> Log:
    mlflow.set_experiment("popcd")
    mlflow.start_run(run_name=folder.name)
    stack.callback(mlflow.end_run)
    mlflow.log_params(settings)
    return lambda step, metrics: mlflow.log_metrics(metrics, step=step)


def _imported(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise FileError(f"--log {extra} needs {module}: pip install 'popcd[{extra}]'") from error
