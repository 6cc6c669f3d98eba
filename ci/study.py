"""Rerun cells of the papers' tables on UCI data sets, and report them beside print.

    python ci/study.py run --datasets yacht --splits 0-4 --out studies/yacht
    python ci/study.py run --datasets yacht --splits 0-19 --address auto --out /shared/yacht
    python ci/study.py report studies/yacht

Cells run as tasks of Ray, on this machine or on a cluster whose machines share the folders. Each
result is a line of results.jsonl in the folder --out; the same command runs what is missing, and
training that was cut off goes on from its last checkpoint. Needs gpflow-dwp[cli,ray].
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cyclopts import App, Parameter
from uci import figures, tables
from uci.cells import Cell, make_cells, run_cell

from gpflow_dwp.evaluation.provenance import describe_provenance

app = App(help=__doc__, default_parameter=Parameter(consume_multiple=True, negative=()))
_THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def numbers(texts: Iterable[str]) -> list[int]:
    """Read integers and ranges of them, such as 0-4."""
    found: list[int] = []
    for text in texts:
        first, dash, last = text.partition("-")
        found += range(int(first), int(last if dash else first) + 1)
    return found


def settings(texts: Iterable[str]) -> dict[str, Any]:
    """Read assignments such as jitter=1e-8; a value that is no JSON is text."""
    found: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a file of JSON lines, but a last one that was cut off."""
    lines = path.read_text().split("\n") if path.exists() else [""]
    return [json.loads(line) for line in lines[:-1]]


def run_task(
    cell: Any, function: Callable[..., dict[str, Any]], **arguments: Any
) -> dict[str, Any]:
    """Run a cell in a worker of Ray; return it with its scores and where they come from."""
    start = time.monotonic()
    about = describe_provenance(getattr(cell, "dtype", "float64"), int(os.environ[_THREADS[0]]))
    about["versions"] = "; ".join(f"{n} {v}" for n, v in sorted(about["versions"].items()))
    told = {name: value for name, value in asdict(cell).items() if value not in (None, {})}
    return {**about, **told, **function(cell, **arguments), "seconds": time.monotonic() - start}


def run_cells(
    cells: Sequence[Any],
    out: Path,
    function: Callable[..., dict[str, Any]],
    *,
    address: str | None = None,
    jobs: int | None = None,
    threads: int = 1,
    gpus: float = 0.0,
    **arguments: Any,
) -> list[dict[str, Any]]:
    """Run cells on Ray, and keep the result of each as soon as it is there.

    :param cells: Frozen dataclasses with a ``key`` that no other has.
    :param out: Folder of ``results.jsonl``. Cells in it are not run again, unless they failed.
    :param function: What runs one, in a process of its own, with ``checkpoint_directory``; where a
        process or machine is lost, another takes its place, at most three times.
    :param address: Of a Ray cluster; None for one that is started here.
    :param jobs: Cells at a time of the latter; None for as many as there are processors.
    :param threads: Of each cell.
    :param gpus: GPUs of each cell, such as 0.25.
    :param arguments: Others of ``function``.
    :return: One object for each cell of the folder: with ``failure`` where it failed.
    """
    import ray

    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.jsonl"
    kept = {line["key"]: line for line in read_lines(results)}
    results.write_text("".join(f"{json.dumps(line)}\n" for line in kept.values()))
    waiting = [cell for cell in cells if "failure" in kept.get(cell.key, {"failure": ""})]
    ray.init(
        address or "local",
        log_to_driver=False,
        num_cpus=None if address or jobs is None else jobs * threads,
    )
    paths = [str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    variables = dict.fromkeys(_THREADS, str(threads)) | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }
    task = ray.remote(
        num_cpus=threads,
        num_gpus=gpus,
        max_calls=1,  # compiled models leak memory
        max_retries=3,
        runtime_env={"env_vars": variables},
    )(run_task)
    running = {
        task.remote(
            cell,
            function,
            checkpoint_directory=str(out / "checkpoints" / cell.key),
            **arguments,
        ): cell
        for cell in waiting
    }
    while running:
        (done,), _ = ray.wait(list(running))
        cell = running.pop(done)
        try:
            line = {"key": cell.key, **ray.get(done)}
            shutil.rmtree(out / "checkpoints" / cell.key, ignore_errors=True)
        except ray.exceptions.RayError as error:
            line = {"key": cell.key, **asdict(cell), "failure": str(error).strip().split("\n")[-1]}
        kept[cell.key] = line
        with results.open("a") as file:
            file.write(f"{json.dumps(line)}\n")
        place = f"[{len(waiting) - len(running)}/{len(waiting)}]"
        told = {name: value for name, value in line.items() if name in _TOLD}
        if line.get("model") == "VMG" and "elbo" in told:
            told["objective"] = told.pop("elbo")  # which is no bound
        texts = (f"{n} {v:.4g}" if isinstance(v, float) else v for n, v in told.items())
        print(place, *texts, flush=True)
    ray.shutdown()
    return list(kept.values())


_TOLD = (
    *("dataset", "table", "function", "method", "num_runs", "noise", "design"),
    *("depth", "model", "label", "split", "failure", "crps"),
    *("elbo", "test_log_likelihood", "nlpd", "nll", "rmse", "seconds"),
)


@app.command
def run(
    *,
    datasets: list[str],
    out: Path,
    depths: tuple[int, ...] = (2,),
    models: tuple[str, ...] = ("DGP", "GW", "A", "AB"),
    splits: tuple[str, ...] = ("0",),
    protocol: str = "papers",
    set: tuple[str, ...] = (),  # noqa: A002
    num_steps: int | None = None,
    num_inducing: int | None = None,
    batch_size: int | None = None,
    num_samples: int | None = None,
    num_importance_samples: int | None = None,
    kl_annealing_steps: int | None = None,
    dtype: str = "float64",
    seed: int = 0,
    uci_folder: Path | None = None,
    address: str | None = None,
    jobs: int | None = None,
    threads: int = 1,
    gpus: float = 0.0,
) -> int:
    """Run every combination of data sets, depths, models and splits.

    :param datasets: boston, concrete, energy, kin8nm, naval, power, protein, wine, yacht.
    :param models: DGP, DIWP, GW, A, AB, VMG, or layers such as GP-GP and LV-GP-GP.
    :param splits: Numbers, such as 0-4; of those, each set's own.
    :param protocol: papers, fast, vmg, networks, cde or cde-fast, each with defaults for what
        follows.
    :param set: Further arguments of the functions that build the models, such as jitter=1e-8.
    :param address: Of a Ray cluster, such as auto (default: Ray on this machine).
    :param jobs: Cells at a time on this machine (default: one a processor).
    :param gpus: GPUs of each cell, such as 0.25.
    """
    folder = None if uci_folder is None else str(uci_folder.resolve())
    cells: list[Cell] = make_cells(
        datasets,
        depths,
        models,
        numbers(splits),
        protocol=protocol,
        options=settings(set),
        num_importance_samples=num_importance_samples,
        uci_folder=folder,
        num_steps=num_steps,
        num_inducing=num_inducing,
        batch_size=batch_size,
        num_samples=num_samples,
        kl_annealing_steps=kl_annealing_steps,
        dtype=dtype,
        seed=seed,
    )
    lines = run_cells(
        cells,
        out,
        run_cell,
        address=address,
        jobs=jobs,
        threads=threads,
        gpus=gpus,
        uci_folder=folder,
    )
    return int(any("failure" in line for line in lines))


@app.command
def report(studies: list[Path], /, *, out: Path | None = None) -> int:
    """Write tables (report.md, and CSV files) and figures beside the printed numbers.

    :param studies: Folders that run wrote.
    :param out: Where to (default: report in the first of them).
    """
    lines: list[Mapping[str, Any]] = [
        line for study in studies for line in read_lines(study / "results.jsonl")
    ]
    if all("failure" in line for line in lines):
        print(f"No cell that ended is in {', '.join(map(str, studies))}: run writes them.")
        return 1
    cells = tables.as_frame(line for line in lines if "failure" not in line)
    folder = out or studies[0] / "report"
    folder.mkdir(parents=True, exist_ok=True)
    text = [f"{len(cells)} cells; {sum('failure' in line for line in lines)} failed."]
    for name, table in tables.all_tables(cells).items():
        table.to_csv(folder / f"{name}.csv", index=False)
        shown = table.dropna(axis="columns", how="all")
        text += [f"## {name}", shown.to_markdown(index=False, floatfmt=".4g")]
    scores = tables.score_table(cells)
    for metric in scores["metric"].unique():
        text.append(f"## {metric} (printed)\n\n{tables.markdown_table(cells, metric)}")
        figures.plot_scores(scores, metric).savefig(folder / f"{metric}.png")
    (folder / "report.md").write_text("\n\n".join(text) + "\n")
    if "trace" in cells and (cells["model"] != "VMG").any():
        figures.plot_traces(cells).savefig(folder / "traces.png")
    print("\n\n".join(text), f"\n\nTables and figures are in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(app())
