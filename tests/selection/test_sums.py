"""Processes whose kernel is a sum."""

from __future__ import annotations

import numpy as np

from gpflow_dwp.models.named_kernels import SUMS, kernel_name
from gpflow_dwp.selection import Choice
from gpflow_dwp.selection.scores import varies
from gpflow_dwp.selection.single_layers import SingleLayers

RNG = np.random.default_rng(0)


def singles(X: np.ndarray, y: np.ndarray) -> SingleLayers:
    """Of standardised data."""
    X, Y = ((part - part.mean(0)) / part.std(0) for part in (X, y[:, None]))
    return SingleLayers(X, Y, None, np.zeros(1), Choice(), 0)


def test_a_sum_of_functions_is_found_and_what_has_no_say_is_left_out() -> None:
    """Catches starts that are all too smooth, and a part for each input whatever the data say."""
    X = RNG.uniform(size=(90, 3))
    y = np.sin(20.0 * X[:, 0]) + np.cos(15.0 * X[:, 1]) + 0.05 * RNG.standard_normal(90)
    layers = singles(X, y)
    joint = layers.plain(["SquaredExponential"])
    sums = layers.with_sums(joint)[0]
    assert kernel_name(sums.make_kernel()).startswith("Additive")
    assert [part.active_dims[0] for part in sums.kernel[2:]] == [0, 1]
    assert sums.scores.mean.log_density > joint[0].scores.mean.log_density + 0.5


def test_scores_of_few_rows_do_not_object_to_a_sum() -> None:
    """Catches scores that flatter a lengthscale of each input: of many rows they do object.

    Nor does evidence, by up to two nats.
    """
    X = RNG.uniform(size=(121, 2))
    y = np.sin(9.0 * X[:, 0]) + X[:, 1] + 0.05 * RNG.standard_normal(121)
    for num_rows, is_first in ((120, True), (121, False)):
        layers = singles(X[:num_rows], y[:num_rows])
        first, *_ = layers.plain(["SquaredExponential"])
        scores = first.scores._replace(log_density=np.full(num_rows, 9.0))
        ahead = layers.with_sums([first._replace(scores=scores)])[0]
        assert (ahead.name in SUMS) is is_first
    few = singles(X[:50], y[:50])
    first, *rest = few.with_sums(few.plain(["SquaredExponential"]))
    sums = next(start for start in (first, *rest) if start.name in SUMS)
    for lead, is_first in ((1.9, True), (2.1, False)):
        ahead = few.with_sums([first._replace(name="Matern52", evidence=sums.evidence + lead)])[0]
        assert (ahead.name in SUMS) is is_first


def test_only_what_is_of_single_inputs_is_scanned_for_its_lengthscale() -> None:
    """Catches a scale, or the signal's variance, that goes to lengthscales of the joint kernel."""
    X = RNG.uniform(size=(60, 3))
    layers = singles(X, 30.0 * X[:, 0] ** 3 + X[:, 1])
    rows = np.arange(60)
    for start in layers.initialisations("AdditiveMatern52", rows):
        joint, _, *others = start.kernel
        np.testing.assert_allclose(joint.lengthscales, np.full(3, np.sqrt(6.0)))
        assert len({float(part.lengthscales) for part in others}) == 1


def test_a_line_is_taken_for_a_line() -> None:
    """Catches functions of single inputs that few rows on a line cannot justify."""
    X = RNG.standard_normal((40, 4))
    y = X @ [1.0, -0.5, 0.3, 0.0] + 0.5 * RNG.standard_normal(40)
    layers = singles(X, y)
    sums = layers.with_sums(layers.plain(["SquaredExponential"]))
    of_sums = next(start for start in sums if start.name.startswith("Additive"))
    assert len(of_sums.kernel) == 2


def test_errors_that_differ_by_place_are_told_from_errors_that_do_not() -> None:
    """Catches a test that is always met, and one that never is."""
    X = RNG.uniform(-1.7, 1.7, (300, 2))
    squares = RNG.standard_normal(300) ** 2
    assert not varies(squares, X)
    assert varies(squares * np.exp(X[:, 0]), X)
