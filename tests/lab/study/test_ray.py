"""Cells on Ray: the results of the runner's own processes, whatever dies."""

from __future__ import annotations

import os
import signal
import subprocess
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


STUDY = """
import sys
from study_archive import tiny_cell
from gpflow_dwp.lab.study import run_cells
cells = [
    tiny_cell(split=split, model=model, depth=2, num_steps=4_000)
    for split in (0, 1) for model in ("GW", "A", "DGP", "AB")
]
ray = None if sys.argv[3] == "none" else sys.argv[3]
run_cells(cells, sys.argv[1], uci_folder=sys.argv[2], ray=ray, jobs=2, progress=False)
"""
NOT_RESULTS = {"seconds_per_step", "seconds_per_epoch", "training_seconds"}


@pytest.mark.slow
def test_real_cells_are_the_same_whatever_is_killed(archive: Path, tmp_path: Path) -> None:
    """With a worker killed, then the study, and resumed: to the bit what is had without Ray."""
    directory, other = tmp_path / "ray", tmp_path / "processes"

    def start(where: Path, ray: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", STUDY, where, archive, ray]
        path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path})

    with start(directory, "local") as study:
        key, cell = _cell_that_trains(directory)
        os.kill(_parent(cell), signal.SIGKILL)
        _wait_until(lambda: not Path(f"/proc/{cell}").exists())
        assert list((directory / "checkpoints" / key).glob("save-*"))
        _wait_until(lambda: _num_results(directory) >= 3)
        key, cell = _cell_that_trains(directory)
        study.kill()
    _wait_until(lambda: not _cells(directory))
    assert list((directory / "checkpoints" / key).glob("save-*"))
    kept = (directory / "results.jsonl").read_bytes()
    with start(directory, "local") as study:
        assert study.wait() == 0
    with start(other, "none") as study:
        assert study.wait() == 0

    assert (directory / "results.jsonl").read_bytes().startswith(kept)
    first, second = (
        {
            record.key: {k: v for k, v in record.metrics.items() if k not in NOT_RESULTS}
            for record in read_results(where)
            if record.metrics
        }
        for where in (directory, other)
    )
    assert len(first) == 8 and first == second
    for curve in (other / "curves").iterdir():
        assert (directory / "curves" / curve.name).read_bytes() == curve.read_bytes()
    assert not list((directory / "checkpoints").iterdir())
    assert not list((directory / "logs").iterdir())


def _cells(directory: Path) -> list[int]:
    """Processes that work on the cells of a study."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"_child" in command and str(directory).encode() in command:
            found.append(int(process.name))
    return found


def _cell_that_trains(directory: Path) -> tuple[str, int]:
    """The key and the process of a cell in the midst of its training."""
    latest = time.monotonic() + 200.0
    while time.monotonic() < latest:
        for file in (directory / "logs").glob("*.jsonl"):
            lines = file.read_text().splitlines()
            if lines and '"bound"' in lines[-1]:
                for number in _cells(directory):
                    if file.stem in Path(f"/proc/{number}/cmdline").read_text():
                        return file.stem, number
        time.sleep(0.05)
    raise AssertionError("no cell trains")


def _num_results(directory: Path) -> int:
    results = directory / "results.jsonl"
    return results.read_bytes().count(b"\n") if results.exists() else 0


def _parent(number: int) -> int:
    return int(Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2].split()[1])


def _wait_until(is_so: Any) -> None:
    latest = time.monotonic() + 200.0
    while not is_so():
        assert time.monotonic() < latest
        time.sleep(0.05)
