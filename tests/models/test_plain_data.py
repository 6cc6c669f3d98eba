"""Objects as plain data, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import gpflow
import gpflow.kernels as gk
import gpflow.likelihoods as gl
import numpy as np
import pytest
import tensorflow_probability as tfp

from gpflow_dwp.exceptions import SavedModelError
from gpflow_dwp.kernels import LevelsMatern52, SeparableMatern52
from gpflow_dwp.models.plain_data import from_config, to_config

KERNELS: dict[str, Callable[[], gk.Kernel]] = {
    "lengthscales": lambda: gk.SquaredExponential(1.7, [0.6, 0.9]),
    "of_this_package": lambda: SeparableMatern52(1.7, [0.6, 0.9]),
    "levels": lambda: LevelsMatern52(1.7, [0.6, 0.9, 0.4, 1.2], [1, 1]),
    "slice": lambda: gk.Matern52(active_dims=slice(0, 2)),
    "rational_quadratic": lambda: gk.RationalQuadratic(1.7, 0.6, alpha=0.4),
    "arc_cosine": lambda: gk.ArcCosine(2, 1.7, [0.6, 0.7], 0.3),
    "periodic_of_one_column": lambda: gk.Periodic(gk.SquaredExponential(active_dims=[0]), 2.5),
    "change_points": lambda: gk.ChangePoints([gk.Matern12(0.3), gk.Linear(2.0)], [0.1], 3.0),
    "nested": lambda: (gk.Linear(1.7) + gk.Matern12(0.3)) * gk.RationalQuadratic(alpha=0.2),
}
X = np.random.default_rng(0).normal(size=(4, 2))


def round_trip(value: Any, *custom_classes: type) -> Any:
    return from_config(json.loads(json.dumps(to_config(value))), custom_classes)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    kernel = KERNELS[name]()
    again = round_trip(kernel)

    assert type(again) is type(kernel)
    inputs = X[:, :1] if name == "change_points" else X
    np.testing.assert_allclose(again(inputs), kernel(inputs), rtol=1e-12)


LIKELIHOODS: dict[str, Callable[[], gl.Likelihood]] = {
    "gaussian": lambda: gl.Gaussian(0.3),
    "gaussian_by_scale": lambda: gl.Gaussian(scale=0.3),
    "gaussian_with_bound": lambda: gl.Gaussian(0.3, variance_lower_bound=0.1),
    "gaussian_of_x": lambda: gl.Gaussian(gpflow.functions.Linear(np.ones((2, 1)), 9.0)),
    "student_t": lambda: gl.StudentT(0.3, df=5.0),
    "poisson": lambda: gl.Poisson(binsize=2.0),
    "beta": lambda: gl.Beta(scale=2.0),
    "ordinal": lambda: gl.Ordinal(np.array([-0.5, 0.5])),
    "heteroskedastic": lambda: gl.HeteroskedasticTFPConditional(
        tfp.distributions.Laplace, tfp.bijectors.Exp()
    ),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_likelihoods(name: str) -> None:
    likelihood = LIKELIHOODS[name]()
    again = round_trip(likelihood)

    mean = np.tile(np.linspace(0.1, 1.0, 4)[:, None], likelihood.latent_dim or 1)
    given = X, mean, np.full(mean.shape, 0.2)
    values, expected = (each.predict_mean_and_var(*given) for each in (again, likelihood))
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_a_class_that_forgets_its_arguments_is_refused() -> None:
    class Forgetful(gk.SquaredExponential):
        def __init__(self, power: int) -> None:
            super().__init__(variance=power)

    with pytest.raises(SavedModelError, match="Forgetful does not keep .* 'power'"):
        to_config(Forgetful(2))


def test_a_name_of_several_classes_is_refused() -> None:
    """Catches a kernel that comes back as another one of the same name."""
    kinds = [type("Own", (gk.Linear,), {"__init__": gk.Linear.__init__}) for _ in range(2)]
    assert type(round_trip(kinds[0](), kinds[0])) is kinds[0]
    with pytest.raises(SavedModelError, match="'custom.Own' is not known here, or that of several"):
        round_trip(kinds[0](), *kinds)


@pytest.mark.parametrize("value", [object(), lambda x: x, {1, 2}])
def test_what_is_no_plain_data_is_refused(value: Any) -> None:
    with pytest.raises(SavedModelError, match="cannot be described as plain data"):
        to_config(value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"class": "os.system", "arguments": {"command": "true"}}, "'os.system' is not known"),
        ({"class": "gpflow.kernels.Linear", "arguments": {"nothing": 1}}, "cannot be built"),
        ({"name": "builtins.eval"}, "'builtins.eval' is not known"),
        ({"class": "tf.math.exp", "arguments": {}}, "'tf.math.exp' is not known"),
        ({"nothing": 1}, "The name None is not known"),
        (
            {"class": "gpflow.kernels.Sum", "arguments": {"kernels": [3]}},
            "gpflow.kernels.Sum cannot be built: can only combine Kernel instances",
        ),
        (
            {"class": "gpflow.kernels.White", "arguments": {"variance": {"name": "tf.math.exp"}}},
            "White cannot have <function exp .* as variance",
        ),
        (
            {"class": "gpflow.functions.Zero", "arguments": {"output_dim": {"array": 10**9}}},
            "gpflow.functions.Zero of sizes .1000000000. takes more room",
        ),
    ],
)
def test_damaged_descriptions_are_refused(config: Any, message: str) -> None:
    with pytest.raises(SavedModelError, match=message):
        from_config(config)
