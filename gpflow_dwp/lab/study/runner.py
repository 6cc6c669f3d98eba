"""Many cells, each in a process of its own, kept as they finish."""

from __future__ import annotations

import contextlib
import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gpflow_dwp.files import held
from gpflow_dwp.interrupts import ending_signals
from gpflow_dwp.lab.cell_process import Processes
from gpflow_dwp.lab.study._job import Job, tidy
from gpflow_dwp.lab.study._progress import StudyProgress
from gpflow_dwp.lab.study._ray import Ray
from gpflow_dwp.lab.study.results import RESULTS, Record, append_record, read_results
from gpflow_dwp.lab.study.runnable import RunnableCell
from gpflow_dwp.validation import check_integers, check_not_negative

__all__ = ["run_cells"]

_LOCK = "study.lock"
_SECONDS_BETWEEN_SHOWS = 1.0


def run_cells(
    cells: Sequence[RunnableCell],
    directory: str | Path,
    *,
    jobs: int | None = None,
    threads: int = 1,
    ray: str | None = None,
    gpus: float = 0.0,
    uci_folder: str | Path | None = None,
    progress: bool = True,
    retry_failed: bool = False,
    on_start: Callable[[], object] | None = None,
) -> list[Record]:
    """Run cells of one kind, and keep the result of each as soon as it is there.

    Each cell runs in a process of its own, because compiled models leak memory, a crash must not
    take the others along, and the number of threads can only be set before TensorFlow is imported.
    Results are appended to ``results.jsonl``; training curves are in ``curves``, what a failed cell
    printed is in ``logs``. Cells that ``results.jsonl`` holds are not run again, and training that
    was cut off goes on from its last checkpoint: the same call resumes a study. How many of them
    another version of the code left, whose defaults may differ, is said with the progress.

    :param cells: What to run, in this order.
    :param directory: Where results are kept; made here. One process at a time can use it.
    :param jobs: How many cells run at a time; None for one, or on Ray as many as it has room for.
    :param threads: Threads of each cell.
    :param ray: Address of a Ray cluster whose machines share the directory and ``uci_folder``, or
        "local" for a Ray of this call; None for processes of this one. On Ray, a cell whose process
        or machine is lost goes on elsewhere; the results are the same.
    :param gpus: GPUs of each cell on Ray, such as 0.25; it sees no others.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :param progress: Whether to show progress.
    :param retry_failed: Whether cells that failed before are run again.
    :param on_start: Called once the directory is held and its results are read, before any cell
        runs.
    :return: The records of all these cells, in their order.
    :raises ValueError: If a number is not a positive integer, a cell is given twice, the directory
        holds results of another kind, or no machine of Ray has so many threads or GPUs.
    :raises ImportError: If Ray is asked for and not installed.
    :raises ConnectionError: If no Ray answers at its address.
    :raises BlockingIOError: If another process uses the directory.
    :raises KeyboardInterrupt: For Ctrl-C, SIGTERM and SIGHUP, once all cells are ended, and saved
        if they end in time.
    """
    check_integers(jobs=1 if jobs is None else jobs, threads=threads)
    check_not_negative(gpus=gpus)
    if gpus and ray is None:
        raise ValueError(f"gpus are shared out by ray, got {gpus} without it.")
    keys = [cell.key for cell in cells]
    if len(set(keys)) < len(keys):
        raise ValueError("cells must differ, got one of them twice.")
    executor: Processes | Ray
    if ray is None:
        executor, most = Processes(), jobs or 1
    else:
        executor, most = Ray(ray, jobs=jobs, threads=threads, gpus=gpus), jobs or len(cells)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    folder = None if uci_folder is None else Path(uci_folder).resolve()
    lock = directory / _LOCK
    lock.touch()
    with held(lock), ending_signals(signal.default_int_handler):
        done = _read_done(directory, cells, retry_failed=retry_failed)
        waiting = [cell for cell in cells if cell.key not in done]
        kept = [done[key] for key in keys if key in done]
        for record in kept:  # a study may have been killed before it could
            if record.status == "finished":
                tidy(directory, record.key)
        if on_start is not None:
            on_start()
        at_work = executor if waiting else contextlib.nullcontext()
        with StudyProgress(len(cells), kept, shown=progress) as display, at_work:
            place = directory.resolve()
            begun = (Job(cell, place, threads, folder) for cell in waiting)
            done |= _run_jobs(begun, executor, most, directory / RESULTS, display)
    return [done[key] for key in keys]


def _run_jobs(
    jobs: Iterator[Job],
    executor: Processes | Ray,
    most: int,
    results: Path,
    display: StudyProgress,
) -> dict[str, Record]:
    """Run jobs, at most so many at a time, each made when there is room for it.

    :return: Their records, by the keys of their cells.
    """
    records: dict[str, Record] = {}
    while True:
        for job in itertools.islice(jobs, most - len(executor.running)):
            executor.start(job)
        if not executor.running:
            return records
        ended = executor.ended(_SECONDS_BETWEEN_SHOWS)
        running = [*executor.running, *ended]
        for job in running:
            job.read()
        display.show([job for job in running if job.step is not None])
        for job, how in ended.items():
            records[job.cell.key] = record = job.record(how)
            append_record(results, record)
            job.tidy()
            display.cell_ended(job, record)


def _read_done(
    directory: Path, cells: Sequence[RunnableCell], *, retry_failed: bool
) -> dict[str, Record]:
    records = read_results(directory) if (directory / RESULTS).exists() else []
    place = {name for cell in cells for name in cell.place}
    if any(place - set(record.cell) for record in records):
        raise ValueError(f"directory {directory} holds the results of another command.")
    return {r.key: r for r in records if r.status == "finished" or not retry_failed}
