"""Many cells, each in a process of its own, kept as they finish."""

from __future__ import annotations

import contextlib
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gpflow_dwp.files import held
from gpflow_dwp.lab.study._job import Job, tidy
from gpflow_dwp.lab.study._progress import StudyProgress
from gpflow_dwp.lab.study.results import RESULTS, Record, append_record, read_results
from gpflow_dwp.lab.study.runnable import RunnableCell
from gpflow_dwp.validation import check_integers

__all__ = ["run_cells"]

_LOCK = "study.lock"
_SECONDS_TO_SAVE = 20.0


def run_cells(
    cells: Sequence[RunnableCell],
    directory: str | Path,
    *,
    jobs: int = 1,
    threads: int = 1,
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
    :param jobs: How many cells run at a time.
    :param threads: Threads of each cell.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :param progress: Whether to show progress.
    :param retry_failed: Whether cells that failed before are run again.
    :param on_start: Called once the directory is held and its results are read, before any cell
        runs.
    :return: The records of all these cells, in their order.
    :raises ValueError: If a number is not a positive integer, a cell is given twice, or the
        directory holds results of another kind.
    :raises BlockingIOError: If another process uses the directory.
    :raises KeyboardInterrupt: For Ctrl-C, SIGTERM and SIGHUP, once all cells are ended, and saved
        if they end in time.
    """
    check_integers(jobs=jobs, threads=threads)
    keys = [cell.key for cell in cells]
    if len(set(keys)) < len(keys):
        raise ValueError("cells must differ, got one of them twice.")
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    folder = None if uci_folder is None else Path(uci_folder).resolve()
    lock = directory / _LOCK
    lock.touch()
    with held(lock), _terminated_as_interrupted():
        done = _read_done(directory, cells, retry_failed=retry_failed)
        waiting = [cell for cell in cells if cell.key not in done]
        kept = [done[key] for key in keys if key in done]
        for record in kept:  # a study may have been killed before it could
            if record.status == "finished":
                tidy(directory, record.key)
        if on_start is not None:
            on_start()
        with StudyProgress(len(cells), kept, shown=progress) as display:
            for job in _run_all(waiting, directory.resolve(), jobs, threads, folder, display):
                record = job.record()
                append_record(directory / RESULTS, record)
                job.tidy()
                done[record.key] = record
                display.cell_ended(job, record)
    return [done[key] for key in keys]


def _read_done(
    directory: Path, cells: Sequence[RunnableCell], *, retry_failed: bool
) -> dict[str, Record]:
    records = read_results(directory) if (directory / RESULTS).exists() else []
    place = {name for cell in cells for name in cell.place}
    if any(place - set(record.cell) for record in records):
        raise ValueError(f"directory {directory} holds the results of another command.")
    return {r.key: r for r in records if r.status == "finished" or not retry_failed}


def _run_all(
    cells: Sequence[RunnableCell],
    directory: Path,
    jobs: int,
    threads: int,
    uci_folder: Path | None,
    display: StudyProgress,
) -> Iterator[Job]:
    """Run cells, ``jobs`` at a time, and yield those whose process has ended."""
    waiting = list(reversed(cells))
    running: list[Job] = []
    try:
        with selectors.DefaultSelector() as selector:
            while waiting or running:
                while waiting and len(running) < jobs:
                    job = Job(waiting.pop(), directory, threads, uci_folder)
                    running.append(job)
                    selector.register(job.fileno(), selectors.EVENT_READ, job)
                for key, _ in selector.select(timeout=1.0):
                    job = key.data
                    if job.read():
                        selector.unregister(key.fd)
                        job.close()
                        running.remove(job)
                        yield job
                display.show(running)
    finally:
        _end(running)


def _end(jobs: Sequence[Job]) -> None:
    """End processes: let them save first, then insist."""
    everyone = jobs
    for number, seconds in ((signal.SIGINT, _SECONDS_TO_SAVE), (signal.SIGKILL, 10.0)):
        for job in jobs:
            job.process.send_signal(number)
        deadline = time.monotonic() + seconds
        jobs = [job for job in jobs if not job.wait(deadline - time.monotonic())]
    for job in everyone:
        job.close()  # not before: a process whose input ends interrupts itself, too


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the study as Ctrl-C does, also where Ctrl-C is ignored.

    A handler of the caller's is left as it is.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if is_main and signal.getsignal(number) == signal.SIG_DFL
    ]
    for number in numbers:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
