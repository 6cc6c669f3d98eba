"""Training in one call: repeatable, watched, and safe to interrupt."""

from __future__ import annotations

import signal
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.keras import tf_keras
from gpflow.utilities import read_values
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, build_deep_wishart_process, fit
from gpflow_dwp.exceptions import CollapseWarning, NonFiniteBoundError
from gpflow_dwp.models.variational import describe_non_finite
from gpflow_dwp.objectives import BoundTerms
from gpflow_dwp.training import Adam, TrainingHistory, TrainingProgress

DATA = toy_data()
X, Y = DATA


def run(model: DeepWishartProcess, num_steps: int, **arguments: Any) -> TrainingHistory:
    return fit(model, num_steps=num_steps, **{"data": DATA, "progress": False, **arguments})


@pytest.mark.usefixtures("eager")
def test_another_seed_gives_another_run() -> None:
    models = (tiny_model(2, posterior="GW", whiten=True) for _ in range(2))
    first, other = (run(model, 1, batch_size=6, seed=seed) for seed, model in enumerate(models))
    assert np.all(first.data_term != other.data_term)


@pytest.mark.usefixtures("eager")
def test_callbacks_are_called_at_multiples_of_the_interval_and_at_the_end() -> None:
    model, events = tiny_model(1), []

    history = run(model, 5, callbacks=[events.append], callback_interval=2)

    assert [(event.step, event.num_steps) for event in events] == [(2, 5), (4, 5), (5, 5)]
    assert all(event.model is model for event in events)
    expected = [history.elbo[rows].mean() for rows in (slice(0, 2), slice(2, 4), slice(4, 5))]
    np.testing.assert_allclose([event.elbo for event in events], expected)


def test_a_model_that_explains_everything_as_noise_is_warned_of() -> None:
    """And one that has found its signal is not, as in all other tests of a hundred steps."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((30, 10)), rng.standard_normal((30, 1))
    model = build_deep_wishart_process(data, 1, num_inducing=5)
    model.likelihood.variance.assign(1.0)
    with pytest.warns(CollapseWarning, match="everything as noise.* nats .*depth='auto'"):
        fit(model, data, 100, progress=False)


@pytest.mark.usefixtures("eager")
def test_an_optimizer_goes_on_where_it_stopped() -> None:
    together, apart = tiny_model(1), tiny_model(1)
    run(together, 2, optimizer=tf_keras.optimizers.Adam(0.01), kl_annealing_steps=0)
    optimizer = tf_keras.optimizers.Adam(0.01)

    for _ in range(2):
        run(apart, 1, optimizer=optimizer, kl_annealing_steps=0)

    # Without hidden layers there is no noise.
    ends = read_values(together)
    for path, value in read_values(apart).items():
        np.testing.assert_allclose(value, ends[path], atol=1e-12)


def test_a_layer_that_is_not_finite_is_named() -> None:
    model = tiny_model(1)
    model.layers[0].kernel.variance.unconstrained_variable.assign(np.nan)
    with pytest.raises(NonFiniteBoundError, match=r"step 0: layers\[0\] \(GlobalInducingGPLayer\)"):
        run(model, 3)

    for ratios, name in (([np.nan, np.nan], "layers[0] (Wish"), ([0.0, np.nan], "layers[1] (G")):
        found = describe_non_finite(tiny_model(2), BoundTerms(np.zeros([]), np.array(ratios)))
        assert str(found).startswith(name)


class WithoutGradient(gpflow.likelihoods.Gaussian):
    """A likelihood whose gradient is not finite, though its value is."""

    def _variational_expectations(self, *arguments: Any) -> Any:
        return super()._variational_expectations(*arguments) + tf.sqrt(0.0 * self.variance)


@pytest.mark.usefixtures("eager")
def test_a_gradient_that_is_not_finite_is_named() -> None:
    model = tiny_model(1, likelihood=WithoutGradient(0.1))
    before = read_values(model)

    with pytest.raises(NonFiniteBoundError, match=r"the gradient of .likelihood.variance is"):
        run(model, 3)

    np.testing.assert_equal(read_values(model), before)


@pytest.mark.usefixtures("eager")
def test_a_prior_that_is_not_finite_is_named() -> None:
    model = tiny_model(1)
    low, high = np.float64(5.0), np.float64(6.0)
    model.likelihood.variance.prior = tfp.distributions.Uniform(low, high)

    with pytest.raises(NonFiniteBoundError, match="step 0: the log prior density is"):
        run(model, 3)


@pytest.mark.usefixtures("eager")
def test_ctrl_c_ends_the_run_and_keeps_what_was_learned() -> None:
    model, handler = tiny_model(1), signal.getsignal(signal.SIGINT)
    before, seen = read_values(model), []

    def interrupt(progress: TrainingProgress) -> None:
        seen.append(read_values(model))
        signal.raise_signal(signal.SIGINT)

    history = run(model, 100, callbacks=[interrupt], callback_interval=2)

    assert history.stop_reason == "interrupted after step 2"
    assert history.num_steps == len(history.log_ratios) == 2
    np.testing.assert_equal(read_values(model), seen[0])
    assert np.all(model.likelihood.variance != before[".likelihood.variance"])
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": (X, np.full_like(Y, np.inf))}, "Y holds inf in row 1"),
        ({"data": X}, r"data must be a pair \(X, Y\), or three, .* got ndarray"),
        ({"callbacks": [3]}, r"callbacks must be a sequence of functions, got \[3\]"),
        ({"optimizer": Adam}, "optimizer must be a Keras optimiser, .*, got <class"),
        ({"protocol": "slow"}, "protocol must be one of fast, natural, .*, vmg, got 'slow'"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    model = tiny_model(1)
    with pytest.raises(ValueError, match=message):
        run(model, 3, **arguments)


def test_xla_takes_the_steps_of_plain_mode() -> None:
    plain, compiled = (tiny_model(1) for _ in range(2))

    expected = run(plain, 3, jit_compile=False)
    history = run(compiled, 3, jit_compile=True)

    np.testing.assert_allclose(history.data_term, expected.data_term, rtol=1e-6)
    np.testing.assert_allclose(history.log_ratios, expected.log_ratios, rtol=1e-6)


@pytest.mark.parametrize("name", ["elbo", "maximum_log_likelihood_objective"])
def test_an_objective_that_fit_would_pass_over_is_refused(name: str) -> None:
    """Catches a class with an objective of its own that is trained on another one."""
    own = type("Own", (DeepWishartProcess,), {name: lambda self, data: tf.zeros([])})
    model = tiny_model(1)
    model = own(model.layers, model.likelihood, model.inducing_variable, num_data=8)
    with pytest.raises(ValueError, match=f"^model must not override {name}, .* got Own: override"):
        fit(model, DATA, 1)
