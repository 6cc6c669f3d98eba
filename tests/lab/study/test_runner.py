"""The study: every cell in its process, kept when it is done, resumed when it is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from study_archive import replace_process, tiny_cell
from study_archive import run_tiny_cells as run

from gpflow_dwp.files import held
from gpflow_dwp.lab import cell_process
from gpflow_dwp.lab.comparison.cell import ComparisonCell
from gpflow_dwp.lab.study import _job
from gpflow_dwp.lab.study import runner as runner_module
from gpflow_dwp.lab.study.results import RESULTS, Record, append_record, read_results
from gpflow_dwp.lab.study.runner import run_cells

# Stands in for the process of a cell: what it does depends on the cell's seed.
STAND_IN = """
    checkpoints = Path(job["arguments"]["checkpoint_directory"])
    with Path("starts.txt").open("a") as file:
        file.write(f"{seed} {os.environ['OMP_NUM_THREADS']} {checkpoints.exists()}\\n")
    Path("shares").write_text(os.environ["TF_FORCE_GPU_ALLOW_GROWTH"])
    if seed == 1:
        send(error="ValueError: no")
        sys.exit(1)
    checkpoints.mkdir(parents=True, exist_ok=True)
    if seed == 2:
        print("all is lost", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 3:
        sys.exit("nothing to say")
    if seed == 4 and not Path("hurry").exists():
        # As a cell does: what is started in the background inherits that Ctrl-C is ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            Path("saved").touch()
            sys.exit(130)
    if seed == 5:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(600)
    if seed == 8:
        sys.stdin.read()
    if seed >= 10:
        Path(f"running-{seed}").touch()
        while not Path(f"running-{21 - seed}").exists():  # 10 and 11 wait for each other
            time.sleep(0.01)
    send(metrics={"elbo": 1.0, "test_log_likelihood": -1.0, "rmse": float(seed)})
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the process of a cell; return the study's directory."""
    monkeypatch.chdir(tmp_path)
    return replace_process(monkeypatch, tmp_path, STAND_IN)


def starts() -> list[str]:
    """Seeds of the cells that were started, in order."""
    return [line.split()[0] for line in Path("starts.txt").read_text().splitlines()]


def test_cells_are_run_and_kept_in_order(stand_in: Path) -> None:
    records = run(stand_in, 7, 0, 6, threads=3)

    assert [record.metrics and record.metrics["rmse"] for record in records] == [7.0, 0.0, 6.0]
    assert read_results(stand_in) == records
    assert Path("starts.txt").read_text() == "7 3 False\n0 3 False\n6 3 False\n"
    assert Path("shares").read_text() == "true"  # a first cell leaves the others a GPU's memory
    record, cell = records[0], tiny_cell(seed=7)
    assert (record.key, record.cell, record.status) == (cell.key, cell.to_dict(), "finished")
    assert record.provenance["threads"] == 3
    assert record.provenance["dtype"] == "float64"
    assert record.provenance["seconds"] > 0.0
    assert not list((stand_in / "checkpoints").iterdir())
    assert not list((stand_in / "logs").iterdir())


def test_what_is_there_is_not_run_again(stand_in: Path) -> None:
    first = run(stand_in, 0, 6)

    again = run(stand_in, 6, 7, 0)

    assert starts() == ["0", "6", "7"]
    assert again == [first[1], read_results(stand_in)[-1], first[0]]


def test_a_failed_cell_is_recorded_and_the_rest_runs(stand_in: Path) -> None:
    records = run(stand_in, 1, 2, 3, 0)

    assert [record.status for record in records] == ["failed", "failed", "failed", "finished"]
    assert [record.metrics is None for record in records] == [True, True, True, False]
    assert records[0].error == "ValueError: no"
    assert records[1].error == (
        "ProcessDied: the process was ended by SIGKILL, perhaps for want of memory; "
        "its last words: all is lost"
    )
    assert records[2].error == (
        "ProcessDied: the process ended with exit code 1; its last words: nothing to say"
    )
    assert records[3].error is None
    logs = {path.stem for path in (stand_in / "logs").iterdir()}
    assert logs == {record.key for record in records[:3]}
    assert starts() == ["1", "2", "3", "0"]


def test_failed_cells_are_run_again_on_request(stand_in: Path) -> None:
    run(stand_in, 1, 2, 0)

    run(stand_in, 1, 2, 0)
    assert starts() == ["1", "2", "0"]
    run(stand_in, 1, 2, 0, retry_failed=True)

    assert starts() == ["1", "2", "0", "1", "2"]
    # One that was killed goes on from its checkpoint; one that failed by itself starts afresh.
    assert Path("starts.txt").read_text().splitlines()[3:] == ["1 1 False", "2 1 True"]


def test_jobs_run_at_a_time(stand_in: Path) -> None:
    records = run(stand_in, 10, 11, jobs=2)

    assert [record.status for record in records] == ["finished", "finished"]


@pytest.fixture
def _terminated_when_a_second_cell_has_started() -> Iterator[None]:
    def terminate() -> None:
        while not Path("starts.txt").exists() or len(starts()) < 2:
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=terminate)
    thread.start()
    yield
    thread.join()


@pytest.mark.usefixtures("_terminated_when_a_second_cell_has_started")
def test_an_ended_study_resumes(stand_in: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(stand_in, 0, 4, 6)

    assert Path("saved").exists()  # the running cell was asked, and had the time to save
    assert [record.cell["seed"] for record in read_results(stand_in)] == [0]
    Path("hurry").touch()
    records = run(stand_in, 0, 4, 6)
    assert [record.status for record in records] == ["finished"] * 3
    assert Path("starts.txt").read_text() == "0 1 False\n4 1 False\n4 1 True\n6 1 False\n"


@pytest.mark.usefixtures("_terminated_when_a_second_cell_has_started")
def test_a_cell_that_does_not_listen_is_ended(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_process, "_SECONDS_TO_SAVE", 0.2)
    before, start = signal.getsignal(signal.SIGTERM), time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        run(stand_in, 0, 5)

    assert time.monotonic() - start < 60.0
    assert signal.getsignal(signal.SIGTERM) is before


def test_one_study_at_a_time(stand_in: Path) -> None:
    stand_in.mkdir()
    lock = stand_in / runner_module._LOCK
    lock.touch()
    with held(lock), pytest.raises(BlockingIOError, match=f"{lock} is in use by another process"):
        run(stand_in, 0)

    assert not Path("starts.txt").exists()
    assert len(run(stand_in, 0)) == 1


def test_what_happens_at_the_start_happens_to_the_one_that_holds_the_directory(
    stand_in: Path,
) -> None:
    started: list[bool] = []

    def start() -> None:
        started.append(Path("starts.txt").exists())

    run(stand_in, 0, on_start=start)
    with held(stand_in / runner_module._LOCK), pytest.raises(BlockingIOError):
        run(stand_in, 7, on_start=start)

    assert started == [False]


def test_a_cell_whose_result_is_damaged_runs_again(stand_in: Path) -> None:
    run(stand_in, 0, 6)
    results = stand_in / RESULTS
    results.write_text(results.read_text().replace('"rmse": 6.0', '"rmse": 5.0'))

    with pytest.warns(UserWarning, match="line 2 is damaged"):
        records = run(stand_in, 0, 6)

    assert records[1].metrics is not None and records[1].metrics["rmse"] == 6.0
    assert starts() == ["0", "6", "6"]


def test_progress_off_a_terminal_is_lines(
    stand_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(stand_in, 0)
    run(stand_in, 0, 1, 6, progress=True)

    output, error = capsys.readouterr()
    assert output == ""
    lines = error.splitlines()
    assert lines[0] == "1 of 3 cells are there already"
    assert lines[1] == "[2/3] yacht, depth 1, GW, split 0: failed: ValueError: no"
    assert lines[2].startswith(
        "[3/3] yacht, depth 1, GW, split 0: ELBO 1.000, test log-likelihood -1.000, RMSE 6.000, "
    )
    assert len(lines) == 3


def test_progress_tells_of_results_of_other_code(
    stand_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = tiny_cell(seed=6)
    old = {"commit": None, "versions": {"gpflow-dwp": "0.0.1"}}
    stand_in.mkdir()
    append_record(
        stand_in / RESULTS, Record(cell.key, cell.to_dict(), "finished", None, {"elbo": 0.0}, old)
    )
    run(stand_in, 0)

    run(stand_in, 0, 6, progress=True)

    assert capsys.readouterr().err == (
        "2 of 2 cells are there already, 1 by another version of the code, whose defaults may "
        "differ\n"
    )


def test_progress_on_a_terminal_is_bars(
    stand_in: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    run(stand_in, 0, progress=True)

    error = capsys.readouterr().err
    assert "cells: 100%" in error
    assert "yacht, depth 1, GW, split 0:  25%" in error and "bound per datum -1.500" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, "jobs must be a positive integer"),
        ({"threads": 0}, "threads must be a positive integer"),
    ],
)
def test_refusals(stand_in: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(stand_in, 0, **arguments)
    assert not stand_in.exists()


def test_processes_of_real_cells(archive: Path, tmp_path: Path) -> None:
    good, bad = tiny_cell(), tiny_cell(options={"width": 0})

    records = run_cells([good, bad], tmp_path, jobs=2, uci_folder=archive, progress=False)

    assert [record.status for record in records] == ["finished", "failed"]
    assert records[0].metrics is not None and set(records[0].metrics) >= {"elbo", "crps"}
    assert (records[1].error or "").startswith("ValueError: width must be a positive integer")
    assert [path.name for path in (tmp_path / "curves").iterdir()] == [f"{good.key}.csv"]
    assert "ValueError: width" in (tmp_path / "logs" / f"{bad.key}.log").read_text()
    assert not list((tmp_path / "checkpoints").iterdir())


def test_a_cell_whose_study_was_killed_saves_and_ends(archive: Path, tmp_path: Path) -> None:
    cell = tiny_cell(num_steps=100_000_000)
    job = _job.Job(cell, tmp_path, 1, archive)
    checkpoints = tmp_path / "checkpoints" / cell.key
    # Stands in for the study, which would take seconds to import what it does not need here.
    study = """
import json, sys, time
from gpflow_dwp.lab.cell_process import start_process
print(start_process(json.loads(sys.argv[1])).pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", study, json.dumps(job.task)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        while not job.step:
            job.read()
            time.sleep(0.01)
        with pytest.raises(BlockingIOError), held(checkpoints):
            pass
        process.kill()

    with held(checkpoints, wait=True):
        assert list(checkpoints.glob("save-*"))
    latest = time.monotonic() + 60.0
    while _is_running(number) and time.monotonic() < latest:
        time.sleep(0.01)
    assert not _is_running(number)


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{number}/stat")  # one that ended and that nobody waits for is there, too
    return not status.exists() or ") Z " not in status.read_text()


def test_a_cell_is_told_when_its_study_ends(stand_in: Path) -> None:
    process = cell_process.start_process(_job.Job(tiny_cell(seed=8), stand_in, 1, None).task)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)

    assert process.stdin is not None
    process.stdin.close()

    assert process.wait(60.0) == 0


def test_results_of_another_command_are_not_added_to(stand_in: Path) -> None:
    cell = ComparisonCell("wine", "svc", "svc", 0)
    run_cells([cell], stand_in, progress=False)
    before = (stand_in / RESULTS).read_bytes()
    assert before and not (stand_in / "curves").exists()  # such cells have no steps

    with pytest.raises(ValueError, match="holds the results of another command"):
        run(stand_in, 0)

    assert (stand_in / RESULTS).read_bytes() == before
