"""How long it takes until the bound stays above a value, by two protocols and by a search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpflow_dwp.lab.benchmarks.measurement import Figure, Measured, Report, Subject, start
from gpflow_dwp.lab.benchmarks.shapes import DatasetName, WishartName, posterior_arguments

if TYPE_CHECKING:
    from gpflow_dwp.training import TrainingProgress
    from gpflow_dwp.training.protocol import ProtocolName

__all__ = [
    "BoundRun",
    "BoundWatch",
    "benchmark_bound",
    "bound_figures",
    "prepare_run",
    "prepare_search",
    "printed_bound",
]

_AT_MOST = 0.1
_SEARCH = "select_model"
_SEARCH_AT_MOST = 0.05
_BEHIND_PRINT = 0.02
_STEPS_OF_A_MEAN = 50


class BoundRun(NamedTuple):
    """How a training run came to the bound.

    :param step: The step after which the bound, as a mean over 50 steps, stayed above to the end of
        the run; None where the run ended below.
    :param seconds: Processor time until then, in s, tracing and compilation included; or None.
    :param last_step: Steps that were taken.
    :param last_bound: The bound per datum over the last 50 of them, in nats.
    :param all_seconds: Processor time of them all, in s.
    """

    step: int | None
    seconds: float | None
    last_step: int
    last_bound: float
    all_seconds: float


class BoundWatch:
    """A callback that notes since when the bound has been above a level, and ends a run.

    :param level: Per datum, in nats.
    :param hold: After how many steps above it the run ends.
    :param num_data: Number of training rows, N.
    :ivar run: What became of the run so far.
    """

    def __init__(self, level: float, hold: int, num_data: int) -> None:
        self._level, self._hold, self._num_data = level, hold, num_data
        self._start = time.process_time()
        self.run = BoundRun(None, None, 0, float("nan"), 0.0)

    def __call__(self, progress: TrainingProgress) -> bool:
        bound, seconds = progress.elbo / self._num_data, time.process_time() - self._start
        since = (self.run.step, self.run.seconds) if self.run.step else (progress.step, seconds)
        step, until_then = since if bound > self._level else (None, None)
        self.run = BoundRun(step, until_then, progress.step, bound, seconds)
        return step is not None and progress.step - step >= self._hold


def benchmark_bound(
    *,
    dataset: DatasetName = "yacht",
    split: int = 0,
    model: WishartName = "A",
    depth: int = 2,
    seed: int = 0,
    uci_folder: Path | None = None,
    level: float | None = None,
    num_steps: int = 3_000,
    search_steps: int = 1_000,
    papers_steps: int = 20_000,
    hold: int = 1_000,
    threads: int = 1,
    report: Report,
) -> dict[str, Measured]:
    """Time training to a bound, by two protocols and from a Gaussian process on.

    The papers' protocol, with ten draws and an output layer that is learned, runs beside the
    default one, and then beside ``select_model`` of the same depth, kernel and noise, which fits a
    Gaussian process first and starts there. Times are processor times of one run each, tracing and
    compilation included. Learning rates fall to the end of a run, so that a bound is passed late in
    one that is just long enough; of ``select_model`` all is timed.

    :param level: Bound per datum to stay above (default: the printed one, less 0.02).
    :param num_steps: Steps of the default protocol's run.
    :param search_steps: Steps that ``select_model`` takes.
    :param papers_steps: Steps of the papers' protocol's run.
    :param hold: Steps above the level after which a run is ended.
    """
    from gpflow_dwp.data import load_uci

    load_uci(dataset, split, folder=uci_folder)  # refuses here what the processes would
    if level is None:
        level = printed_bound(dataset, depth, model) - _BEHIND_PRINT
    if not math.isfinite(level):
        raise ValueError(f"--level must be finite, got {level}.")
    folder = None if uci_folder is None else str(uci_folder.resolve())
    place = (dataset, split, folder, model, depth, seed)
    fast, papers = (
        Subject(f"the run by protocol {name}", prepare_run, (place, name, count, level, hold))
        for name, count in (("fast", num_steps), ("papers", papers_steps))
    )
    search = Subject(f"the run of {_SEARCH}", prepare_search, (place, search_steps, level))
    runs = {}
    with start(papers, threads) as neighbour:
        neighbour.send()
        for name, subject in (("fast", fast), (_SEARCH, search)):
            with start(subject, threads) as process:
                runs[name] = BoundRun(*process.ask()["value"])
            report(f"{name}: ended after {runs[name].last_step} steps")
        runs["papers"] = BoundRun(*neighbour.receive()["value"])
        report(f"papers: ended after {runs['papers'].last_step} steps")
    title = f"{model} of depth {depth} on {dataset}, split {split}, above {level:g}"
    return {title: Measured(bound_figures(runs), {"runs": runs})}


def bound_figures(runs: Mapping[str, BoundRun]) -> list[Figure]:
    """Times and ends of runs; where one ended below, what needs it is left out."""
    figures = []
    for name, run in runs.items():
        if run.step is not None and run.seconds is not None:
            figures += [
                Figure(f"{name}, steps to the bound", run.step),
                Figure(f"{name}, s of processor to the bound", run.seconds),
            ]
        per_step = 1e3 * run.all_seconds / run.last_step
        figures += [
            Figure(f"{name}, ms of processor a step, all included", per_step),
            Figure(f"{name}, bound at the end", run.last_bound),
        ]
    papers = runs["papers"].seconds
    for name, at_most in (("fast", _AT_MOST), (_SEARCH, _SEARCH_AT_MOST)):
        own = runs[name].seconds
        if own is not None and papers is not None:
            title = f"time to the bound, {name} / papers"
            figures.append(Figure(title, own / papers, 0.0, at_most))
    return figures


def printed_bound(dataset: str, depth: int, model: str) -> float:
    """Return the ELBO per datum that the improved paper prints, in nats.

    :raises ValueError: If it prints none.
    """
    from gpflow_dwp.lab.study.published import published_scores

    table = published_scores().query("paper == 'improved' and metric == 'elbo'")
    wanted = (table["dataset"] == dataset) & (table["depth"] == depth) & (table["model"] == model)
    if not wanted.any():
        raise ValueError(
            f"--level must be given: no ELBO of {model} of depth {depth} on {dataset} is printed."
        )
    return float(table.loc[wanted, "mean"].iloc[0])


def prepare_run(
    place: Sequence[Any], protocol: ProtocolName, num_steps: int, level: float, hold: int
) -> Callable[[int], BoundRun]:
    """Train new models until their bounds have stayed above a level: see :func:`benchmark_bound`.

    :param place: Data set, split, folder of data sets, model, depth and seed.
    """
    from gpflow_dwp.data import load_uci
    from gpflow_dwp.models import build_deep_wishart_process
    from gpflow_dwp.training import PROTOCOLS, fit

    dataset, split, folder, model, depth, seed = place
    data = load_uci(dataset, split, folder=folder).train
    arguments: dict[str, Any] = {
        "output": "pseudo_targets" if protocol == "papers" else None,
        "num_samples": PROTOCOLS[protocol].num_samples,
        **posterior_arguments(model),
    }

    def run(times: int) -> BoundRun:
        built = build_deep_wishart_process(data, depth, seed=seed, **arguments)
        watch = BoundWatch(level, hold, len(data[0]))
        fit(
            built,
            data,
            num_steps,
            protocol=protocol,
            seed=seed,
            callbacks=[watch],
            callback_interval=min(_STEPS_OF_A_MEAN, num_steps),
            progress=False,
        )
        return watch.run

    return run


def prepare_search(place: Sequence[Any], num_steps: int, level: float) -> Callable[[int], BoundRun]:
    """Select a model of one depth, kernel and noise: see :func:`benchmark_bound`.

    :param place: As for :func:`prepare_run`.
    """
    from gpflow_dwp.data import load_uci
    from gpflow_dwp.selection import select_model

    dataset, split, folder, model, depth, seed = place
    data = load_uci(dataset, split, folder=folder).train
    arguments: dict[str, Any] = {
        "depth": depth,
        "kernel": "SquaredExponential",
        "warp": False,
        "noise": "gaussian",
        **posterior_arguments(model),
    }

    def run(times: int) -> BoundRun:
        began = time.process_time()
        selection = select_model(data, num_steps=num_steps, seed=seed, progress=False, **arguments)
        seconds = time.process_time() - began
        bound = selection.best.elbo / len(data[0])
        ended = BoundRun(num_steps, seconds, num_steps, bound, seconds)
        return ended if bound > level else ended._replace(step=None, seconds=None)

    return run
