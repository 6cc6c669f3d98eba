"""Signals during training: the state is saved, then they do what they do."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_reference import tiny_model, toy_data

from gpflow_dwp import fit
from gpflow_dwp.training._run import deferred_signals

ENDING = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers_are_put_back() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_that_ends_the_process_finds_the_state_saved(number: int, tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def handle(number: int, frame: object) -> None:
        seen.append([path.name for path in tmp_path.iterdir()])

    signal.signal(number, handle)
    send = [lambda progress: signal.raise_signal(number) if progress.step == 2 else None]
    watched: Any = {"callbacks": send, "callback_interval": 2, "checkpoint_directory": tmp_path}
    history = fit(tiny_model(1), toy_data(), 5, progress=False, **watched)

    assert len(seen) == 1 and "checkpoint" in seen[0]
    assert history.stop_reason == "interrupted after step 2"
    assert signal.getsignal(number) is handle


def test_the_second_signal_does_not_wait_and_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    calls: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    with deferred_signals(until_saved=True) as seen:
        signal.raise_signal(signal.SIGHUP)
        assert not seen()
        signal.raise_signal(signal.SIGTERM)
        assert seen() and not calls
        signal.raise_signal(signal.SIGTERM)
        assert calls == [signal.SIGTERM]
