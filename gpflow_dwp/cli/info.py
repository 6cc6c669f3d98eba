"""``gpflow-dwp info``: what a run or a saved model is, and which versions are installed."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.parameters import Json
from gpflow_dwp.cli.run_directory import DESCRIPTION, METRICS, MODEL, Run
from gpflow_dwp.files import read_sealed

if TYPE_CHECKING:
    from gpflow_dwp.models import VariationalModel

__all__ = ["info"]


def info(run: Path | None = None, /, *, json: Json = False) -> None:
    """Say what a run directory or saved model is, and which versions are installed.

    Of a run or model it tells columns, scores, layers and versions.

    examples:

        gpflow-dwp info runs/houses-1
        gpflow-dwp info --json

    :param run: A directory that fit or save_model wrote (default: versions only).
    """
    from gpflow_dwp.cli.reports import as_json, scores_as_text
    from gpflow_dwp.evaluation.provenance import list_versions

    found: dict[str, dict[str, Any]]
    if run is None:
        found = {"versions": list_versions()}
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
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            print(f"  {name.replace('_', ' ')}: {shown}")
    if scores:
        print(scores_as_text(scores))


def _describe(run: Run) -> dict[str, dict[str, Any]]:
    directory = run.folder
    if (directory / DESCRIPTION).is_file():
        return _tell_of_run(directory, can_go_on=run.can_go_on)
    if run.can_go_on:
        return {"run": {"unfinished": True, "has_steps": run.has_steps}}
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    saved = directory / MODEL if (directory / MODEL).is_dir() else directory
    return {"model": _describe_saved(saved)}


def _tell_of_run(directory: Path, *, can_go_on: bool) -> dict[str, dict[str, Any]]:
    from gpflow_dwp.cli.reports import SCORES
    from gpflow_dwp.cli.trained_run import TrainedRun

    run, metrics = TrainedRun.read(directory), read_sealed(directory / METRICS)
    if {name for scores in metrics["scores"].values() for name in scores} - {*SCORES}:
        raise UsageError(f"{directory / METRICS} is damaged: it has scores of another kind")
    kept = ("training_rows", "validation_rows", "test_rows", "steps", "best_step", "stop_reason")
    described = {
        "target": run.target_name,
        "task": run.task,
        **({} if run.classes is None else {"classes": list(run.classes)}),
        "columns": list(run.encoder.columns),
        **{name: metrics[name] for name in kept if metrics.get(name) is not None},
        "can_go_on": can_go_on,
        "scores": metrics["scores"],
    }
    return {
        "run": described,
        "model": _describe_saved(directory / MODEL),
        "versions": run.versions,
    }


def _describe_saved(directory: Path) -> dict[str, Any]:
    """What a saved model is, found with floats of its own precision."""
    import gpflow
    import numpy as np

    from gpflow_dwp.models import load_model

    with gpflow.config.as_context():
        try:
            dtype = loads((directory / "model.json").read_text())["dtype"]
            gpflow.config.set_default_float(np.dtype(dtype).type)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # loading says what is wrong
        return _describe_model(load_model(directory))


def _describe_model(model: VariationalModel) -> dict[str, Any]:
    from gpflow_dwp.models import model_summary

    layers = []
    for layer in model.layers:
        kernel = getattr(layer, "kernel", None)
        of = "" if kernel is None else f" ({type(kernel).__name__})"
        layers.append(f"{type(layer).__name__}{of}")
    parts = [part for part in model_summary(model).parts if part.name.startswith("layers[")]
    sizes = [int(variable.shape.num_elements()) for variable in model.trainable_variables]
    return {
        "class": type(model).__name__,
        "layers": layers,
        "nats": [None if part.kl is None else round(part.kl, 2) for part in parts],
        "collapsed_layers": [part.name for part in parts if part.collapsed],
        "likelihood": type(model.likelihood).__name__,
        "inputs": model.num_inputs,
        "trainable_parameters": sum(sizes),
        "dtype": model.trainable_variables[0].dtype.name if sizes else None,
    }
