"""Curves of the bound, and of what each layer costs."""

from __future__ import annotations

import io

import numpy as np
import pytest

from gpflow_dwp.evaluation import plot_layer_divergences, plot_learning_curve


def test_every_layer_has_its_curve() -> None:
    log_ratios = -np.stack([np.full(20, 3.0), np.linspace(1.0, 2.0, 20)], axis=1)

    ax = plot_layer_divergences(log_ratios, names=["hidden", "output"])

    assert [line.get_label() for line in ax.lines] == ["hidden", "output"]
    assert ax.get_yscale() == "log"
    for line, column in zip(ax.lines, log_ratios.T, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 21))
        np.testing.assert_allclose(line.get_ydata(), -column)
    ax.figure.savefig(io.BytesIO(), format="png")


def test_long_runs_are_averaged_and_negative_estimates_are_shown() -> None:
    steps = np.arange(1000.0)
    noisy = -np.sin(steps)[:, None]

    (line,) = plot_layer_divergences(noisy).lines

    assert len(line.get_ydata()) == 981
    assert np.abs(line.get_ydata()).max() < 0.2
    assert line.axes.get_yscale() == "linear"
    np.testing.assert_allclose(line.get_ydata()[0], np.sin(steps[:20]).mean())
    assert line.get_xdata()[0] == 11


@pytest.mark.parametrize(
    ("log_ratios", "names", "message"),
    [
        ([1.0, 2.0], None, r"log_ratios must have shape \[T, L\], got \[2\]"),
        (np.zeros((0, 2)), None, r"got \[0, 2\]"),
        (np.zeros((5, 2)), ["a"], "names must name 2 layers, got 1"),
    ],
)
def test_refuses(log_ratios: object, names: list[str] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_layer_divergences(log_ratios, names=names)  # type: ignore[arg-type]


def test_the_end_of_annealing_is_marked() -> None:
    marked = plot_learning_curve([1, 2, 3], [0.0, 1.0, 2.0], annealing_steps=2)
    plain = plot_learning_curve([1, 2, 3], [0.0, 1.0, 2.0])

    assert [line.get_label() for line in marked.lines] == ["each record", "annealing ends"]
    assert list(marked.lines[1].get_xdata()) == [2, 2]
    assert len(plain.lines) == 1
