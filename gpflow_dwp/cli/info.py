"""``gpflow-dwp info``: what a run or a saved model is, and which versions are installed."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import PackageNotFoundError, version
from json import loads
from pathlib import Path
from typing import Any

from gpflow_dwp.cli.backend import load_tensorflow
from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.parameters import Json
from gpflow_dwp.cli.run_directory import DESCRIPTION, METRICS, MODEL, Run
from gpflow_dwp.files import read_archive, read_sealed

__all__ = ["info"]

_PACKAGES = (
    *("gpflow-dwp", "gpflow", "tensorflow", "tensorflow-probability", "tf_keras"),
    *("numpy", "scipy", "pandas", "scikit-learn"),
)
_KEPT = (
    "training_rows",
    "validation_rows",
    "test_rows",
    "steps",
    "best_step",
    "stop_reason",
    "reason",
)


def info(run: Path | None = None, /, *, json: Json = False) -> None:
    """Say what a run directory or saved model is, and which versions are installed.

    Of a run or model it tells columns, scores, layers and versions.

    examples:

        gpflow-dwp info runs/houses-1
        gpflow-dwp info --json

    :param run: A directory that fit or save_model wrote (default: versions only).
    """
    from gpflow_dwp.cli.reports import as_json, scores_as_text

    if run is None:
        found: dict[str, dict[str, Any]] = {"versions": _versions()}
    else:
        with user_mistakes():
            found = _describe(Run(run))
    if json:
        print(as_json(found))
        return
    scores = found.get("run", {}).pop("scores", {})
    for title, section in found.items():
        print(f"{title}:")
        for name, value in section.items():
            print(f"  {_in_words(name, value)}")
    if scores:
        print(scores_as_text(scores))


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _describe(run: Run) -> dict[str, dict[str, Any]]:
    directory = run.folder
    if (directory / DESCRIPTION).is_file():
        return _tell_of_run(run)
    if run.can_go_on:
        return {"run": {"unfinished": True, "has_steps": run.has_steps}}
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    return {"model": _describe_saved(directory)}


def _tell_of_run(run: Run) -> dict[str, dict[str, Any]]:
    from gpflow_dwp.cli.reports import SCORES
    from gpflow_dwp.cli.trained_run import TrainedRun

    trained, metrics = TrainedRun.read(run.directory), read_sealed(run.folder / METRICS)
    if {name for scores in metrics["scores"].values() for name in scores} - {*SCORES}:
        raise UsageError(f"{run.folder / METRICS} is damaged: it has scores of another kind")
    if not (run.folder / MODEL).is_dir():
        raise UsageError(f"{run.directory} is damaged: its model is missing")
    described = {
        "target": trained.target_name,
        "task": trained.task,
        **({} if trained.classes is None else {"classes": list(trained.classes)}),
        "columns": list(trained.encoder.columns),
        **{name: metrics[name] for name in _KEPT if metrics.get(name) is not None},
        "can_go_on": run.can_go_on,
        "scores": metrics["scores"],
    }
    return {"run": described, "model": trained.model, "versions": trained.versions}


def _describe_saved(directory: Path) -> dict[str, Any]:
    """What a saved model is, found with floats of its own precision."""
    load_tensorflow()
    import gpflow
    import numpy as np

    from gpflow_dwp.cli.trained_run import describe_model
    from gpflow_dwp.models import load_model

    with gpflow.config.as_context():
        try:
            packed = read_archive((directory / "model.zip").read_bytes())
            dtype = loads(packed["model.json"])["dtype"]
            gpflow.config.set_default_float(np.dtype(dtype).type)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # loading says what is wrong
        return describe_model(load_model(directory))


def _in_words(name: str, value: Any) -> str:
    """A line about a field."""
    if name == "can_go_on":
        return "training can go on by fit --resume" if value else "training has ended"
    if name == "unfinished":
        return "training was cut off, and can go on by fit --resume"
    if name == "has_steps":
        return f"{'some' if value else 'no'} steps are kept"
    if name == "collapsed_layers" and not value:
        return "every layer has learned from the data"
    title = {
        "nats": "learned from the data, by layer (nats)",
        "collapsed_layers": "layers that learned nothing",
    }.get(name, name.replace("_", " "))
    return f"{title}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
