"""Steps on several devices beside one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from gpflow_dwp.lab.benchmarks import devices
from gpflow_dwp.lab.benchmarks.devices import benchmark_devices
from gpflow_dwp.lab.benchmarks.measurement import Subject, Timings


def test_what_is_timed_is_over_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a ratio upside down, and ways to divide a step that are mixed up."""

    class Told:
        def ask(self) -> dict[str, Any]:
            return {"value": {"devices": ["CPU:0", "CPU:1"], "gradient_bytes": 2_000_000}}

    @contextlib.contextmanager
    def started(subject: Subject) -> Iterator[Told]:
        assert subject.arguments[3:] == (2, "rows")
        yield Told()

    def measured(subjects: list[Subject], **_: Any) -> dict[str, Timings]:
        seconds = {(1, "rows"): 4.0, (2, "rows"): 1.0, (2, "samples"): 2.0}
        return {s.title: Timings([seconds[s.arguments[3:]]], [1.0], 1.0) for s in subjects}

    monkeypatch.setattr(devices, "start", started)
    monkeypatch.setattr(devices, "measure", measured)

    result = benchmark_devices(shapes=("yacht-2",), report=lambda _: None)["yacht-2"]

    assert {figure.name: figure.value for figure in result.figures} == {
        "2 devices, rows / one device": 0.25,
        "2 devices, samples / one device": 0.5,
        "one device, ms": 4e3,
        "2 devices, rows, ms": 1e3,
        "2 devices, samples, ms": 2e3,
        "gradients to average, MB": 2.0,
    }
