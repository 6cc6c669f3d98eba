"""Peak memory of a training step, over what its reverse pass must keep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpflow_dwp.lab.benchmarks._arguments import check_arguments
from gpflow_dwp.lab.benchmarks.kept import kept_arrays
from gpflow_dwp.lab.benchmarks.measurement import Figure, summary
from gpflow_dwp.lab.benchmarks.shapes import SHAPES
from gpflow_dwp.lab.benchmarks.subjects import WISHART_MODELS, Subject
from gpflow_dwp.lab.study import thread_environment

__all__ = ["benchmark_memory"]

_AT_MOST = 2.0
# Every array that counts is mapped and unmapped on its own, and TensorFlow's pool for oneDNN, which
# never shrinks, is not used: resident memory then follows what is alive.
_ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": "65536", "TF_ENABLE_ONEDNN_OPTS": "0"}


def benchmark_memory(
    shapes: Sequence[str],
    models: Sequence[str] = WISHART_MODELS,
    dtypes: Sequence[str] = ("float64",),
    *,
    turns: int = 5,
    threads: int = 1,
    report: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure peak resident memory of single steps, each in a process of its own.

    The peak during a step minus what was resident before it, once the step is traced and compiled;
    over the bytes of :func:`kept_arrays`. Freed arrays go back to the system at once, so that it is
    what arrays need; a pool that keeps them may hold more. TensorFlow takes operations that do not
    depend on each other in an order that differs from process to process, and the peak with it.

    :param shapes: Names in :data:`SHAPES`.
    :param models: Names in :data:`WISHART_MODELS`.
    :param dtypes: "float64", "float32" or both.
    :param turns: Processes that are measured.
    :param threads: See :func:`measure`.
    :param report: Called with a line of progress.
    :return: For each shape, under "figures" a list of :class:`Figure` as dictionaries, under
        "peaks" bytes, process by process, and under "kept" those of each array that must be kept.
    :raises ValueError: If a name is unknown, or a count is not a positive integer.
    :raises RuntimeError: If this is not Linux, whose /proc tells the peak, or a process fails.
    """
    check_arguments(
        shapes, models, dtypes, known_models=WISHART_MODELS, turns=turns, threads=threads
    )
    if not sys.platform.startswith("linux"):
        raise RuntimeError(f"peak memory can be measured on Linux only, this is {sys.platform}.")
    result: dict[str, Any] = {}
    for name in shapes:
        figures: list[Figure] = []
        result[name] = {"figures": [], "peaks": {}, "kept": {}}
        for dtype in dtypes:
            for model in models:
                subject = Subject(model, SHAPES[name], dtype)
                peaks = [_peak(subject, threads) for _ in range(turns)]
                size = np.dtype(dtype).itemsize
                kept = {a.name: size * a.elements for a in kept_arrays(subject.shape, model)}
                total = sum(kept.values())
                title = str(subject)
                ratios = [peak / total for peak in peaks]
                figures += [
                    summary(f"{title}, peak / kept", ratios, _AT_MOST),
                    summary(f"{title}, peak, MB", [1e-6 * peak for peak in peaks]),
                    Figure(f"{title}, kept, MB", 1e-6 * total, 0.0),
                ]
                result[name]["peaks"][title] = peaks
                result[name]["kept"][title] = kept
                report(f"{name}: measured {subject}")
        result[name]["figures"] = [figure._asdict() for figure in figures]
    return result


def _peak(subject: Subject, threads: int) -> int:
    command = [sys.executable, "-m", "gpflow_dwp.lab.benchmarks._memory_child"]
    done = subprocess.run(
        [*command, json.dumps(subject)],
        env=os.environ | thread_environment(threads) | _ALLOCATION,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no error output"])[-1]
        raise RuntimeError(f"The process that measures {subject} failed: {last}")
    return int(done.stdout.splitlines()[-1])
