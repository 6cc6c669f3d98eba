"""Cells on Ray: the results of the runner's own processes, whatever dies."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from study_archive import replace_process
from study_archive import run_tiny_cells as run

from gpflow_dwp.lab.study.results import read_results

pytest.importorskip("ray")
# Older versions of Ray leave files to be closed by Python.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

# Stands in for the process of a cell: what it does depends on the cell's seed.
STAND_IN = """
    log = Path(job["log"])
    where = log.parent.parent.parent  # of the study
    first = not (where / f"started-{seed}").exists()
    (where / f"started-{seed}").touch()
    if seed == 1:
        send(error="ValueError: no")
        sys.exit(1)
    if seed == 3:
        print("all is lost", file=sys.stderr, flush=True)
        sys.exit(4)
    if seed == 5 and first:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 6 and first:
        os.kill(os.getppid(), signal.SIGKILL)
        sys.stdin.read()
        (where / "told").touch()
        sys.exit(130)
    if seed == 4 and not (where / "hurry").exists():
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            (where / "saved").touch()
            sys.exit(130)
    environment = [os.environ["OMP_NUM_THREADS"], os.environ.get("CUDA_VISIBLE_DEVICES", "")]
    (where / "environment").write_text(" ".join(environment))
    send(metrics={"elbo": 1.0, "rmse": float(seed)})
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the process of a cell; return the study's directory."""
    return replace_process(monkeypatch, tmp_path, STAND_IN)


@pytest.mark.slow
def test_whatever_dies_the_others_finish(stand_in: Path) -> None:
    """A killed process or worker must be replaced, a failure recorded once, and nothing lost."""
    records = run(stand_in, 0, 1, 3, 5, 6, ray="local", threads=2)

    assert [record.metrics and record.metrics["rmse"] for record in records] == [
        *(0.0, None, None, 5.0, 6.0),
    ]
    assert records[1].error == "ValueError: no"
    assert records[2].error == (
        "ProcessDied: the process ended with exit code 4; its last words: all is lost"
    )
    assert sorted(read_results(stand_in), key=str) == sorted(records, key=str)
    assert (stand_in.parent / "told").exists()  # that its worker is no more
    assert (stand_in.parent / "environment").read_text() == "2 -1"
    logs = {path.name for path in (stand_in / "logs").iterdir()}
    assert logs == {f"{record.key}.log" for record in records[1:3]}
    assert 0.0 < records[0].provenance["seconds"] < 60.0


def test_a_cancelled_study_saves_and_resumes_without_ray(stand_in: Path) -> None:
    """SIGTERM has a handler of Ray's, which would exit at once; workers block SIGINT."""

    def terminate() -> None:
        while not (stand_in.parent / "started-4").exists() or not _num_results(stand_in):
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=terminate)
    thread.start()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run(stand_in, 0, 4, ray="local", jobs=2)
    thread.join()

    assert (stand_in.parent / "saved").exists()
    assert signal.getsignal(signal.SIGTERM) is before
    assert [record.cell["seed"] for record in read_results(stand_in)] == [0]
    (stand_in.parent / "hurry").touch()
    assert [record.status for record in run(stand_in, 0, 4)] == ["finished"] * 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ray": "127.0.0.1:1"}, ConnectionError, "no Ray could be reached at 127.0.0.1:1: .*ref"),
        ({"ray": "ray://nowhere.invalid:1"}, ConnectionError, "reached at ray://nowhere.invalid:1"),
        ({"gpus": 0.5}, ValueError, "gpus are shared out by ray, got 0.5 without it"),
        ({"gpus": -0.5, "ray": "local"}, ValueError, "gpus must"),
        ({"gpus": 0.5, "ray": "local"}, ValueError, "must be what a machine of Ray has, got 1 and"),
    ],
)
def test_refusals(
    stand_in: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    """A place without room would let the study wait for ever."""
    with pytest.raises(error, match=message):
        run(stand_in, 0, **arguments)


def test_ray_is_an_extra(stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'ray is .*pip install "gpflow-dwp\[ray\]"'):
        run(stand_in, 0, ray="local")


def _num_results(directory: Path) -> int:
    results = directory / "results.jsonl"
    return results.read_bytes().count(b"\n") if results.exists() else 0
