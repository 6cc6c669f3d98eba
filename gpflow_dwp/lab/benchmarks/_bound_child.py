"""A process that trains one model until its bound stays above a level, again and again."""

from __future__ import annotations

import json
import sys

from gpflow_dwp.data import load_uci
from gpflow_dwp.lab.benchmarks.subjects import posterior_arguments
from gpflow_dwp.lab.benchmarks.time_to_bound import BoundRun, BoundTask, train_to_bound
from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.training import PROTOCOLS


def main() -> None:
    """Write a line for each run of the task in the first argument, in JSON, until it is killed."""
    task = BoundTask(*json.loads(sys.argv[1]))
    while True:
        print(json.dumps(_run(task)), flush=True)


def _run(task: BoundTask) -> BoundRun:
    data = load_uci(task.dataset, task.split, folder=task.uci_folder).train
    model = build_deep_wishart_process(
        data,
        task.depth,
        output="pseudo_targets" if task.protocol == "papers" else None,
        num_samples=PROTOCOLS[task.protocol].num_samples,
        seed=task.seed,
        **posterior_arguments(task.model),
    )
    return train_to_bound(
        model,
        data,
        task.level,
        protocol=task.protocol,
        num_steps=task.num_steps,
        hold=task.hold,
        seed=task.seed,
    )


if __name__ == "__main__":
    main()
