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
from model_reference import tiny_model, toy_data

from gpflow_dwp import DeepWishartProcess, build_deep_wishart_process, fit
from gpflow_dwp.exceptions import CollapseWarning, NonFiniteBoundError
from gpflow_dwp.training import Adam, TrainingHistory, TrainingProgress

DATA = toy_data()
X, Y = DATA


def run(model: DeepWishartProcess, num_steps: int, **arguments: Any) -> TrainingHistory:
    arguments = {"data": DATA, "progress": False, **arguments}
    return fit(model, arguments.pop("data"), num_steps, **arguments)


def values(model: DeepWishartProcess) -> list[np.ndarray]:
    return [variable.numpy() for variable in model.trainable_variables]


@pytest.mark.usefixtures("eager")
def test_one_seed_gives_one_run_and_another_seed_another() -> None:
    models = [tiny_model(2, posterior="GW", whiten=True) for _ in range(3)]

    first, second, other = (
        run(model, 2, batch_size=6, seed=seed)
        for model, seed in zip(models, (0, 0, 1), strict=True)
    )

    np.testing.assert_array_equal(first.elbo, second.elbo)
    np.testing.assert_array_equal(first.log_ratios, second.log_ratios)
    for value, expected in zip(values(models[0]), values(models[1]), strict=True):
        np.testing.assert_array_equal(value, expected)
    assert np.all(first.data_term != other.data_term)


def test_callbacks_are_called_at_multiples_of_the_interval_and_at_the_end() -> None:
    model, events = tiny_model(1), []

    history = run(model, 8, callbacks=[events.append], callback_interval=3)

    assert [event.step for event in events] == [3, 6, 8]
    assert {event.num_steps for event in events} == {8}
    assert all(event.model is model for event in events)
    expected = [history.elbo[rows].mean() for rows in (slice(0, 3), slice(3, 6), slice(6, 8))]
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
    run(together, 4, optimizer=tf_keras.optimizers.Adam(0.01), kl_annealing_steps=0)
    optimizer = tf_keras.optimizers.Adam(0.01)

    for _ in range(2):
        run(apart, 2, optimizer=optimizer, kl_annealing_steps=0)

    # Without hidden layers there is no noise.
    for value, expected in zip(values(apart), values(together), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)


def test_a_layer_that_is_not_finite_is_named() -> None:
    model = tiny_model(2, posterior="GW")
    model.layers[0].kernel.variance.unconstrained_variable.assign(np.nan)

    with pytest.raises(NonFiniteBoundError, match=r"step 0: layers\[0\] \(WishartLayer\)"):
        run(model, 3)


class WithoutGradient(gpflow.likelihoods.Gaussian):
    """A likelihood whose gradient is not finite, though its value is."""

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        @tf.custom_gradient
        def spoil(value: tf.Tensor) -> Any:
            return tf.identity(value), lambda upstream: upstream * np.nan

        expectations = super()._variational_expectations(X, Fmu, Fvar, Y)
        return expectations + spoil(tf.convert_to_tensor(self.variance))


def test_a_gradient_that_is_not_finite_is_named() -> None:
    model = tiny_model(1, likelihood=WithoutGradient(0.1))
    before = values(model)

    with pytest.raises(NonFiniteBoundError, match=r"the gradient of .likelihood.variance is"):
        run(model, 3)

    for value, expected in zip(values(model), before, strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.usefixtures("eager")
def test_a_prior_that_is_not_finite_is_named() -> None:
    model = tiny_model(1)
    low, high = np.float64(5.0), np.float64(6.0)
    model.likelihood.variance.prior = tfp.distributions.Uniform(low, high)

    with pytest.raises(NonFiniteBoundError, match="step 0: the log prior density is"):
        run(model, 3)


def test_ctrl_c_ends_the_run_and_keeps_what_was_learned() -> None:
    model, handler = tiny_model(1), signal.getsignal(signal.SIGINT)

    def interrupt(progress: TrainingProgress) -> None:
        if progress.step == 4:
            signal.raise_signal(signal.SIGINT)

    history = run(model, 100, callbacks=[interrupt], callback_interval=2)

    assert history.stop_reason == "interrupted after step 4"
    assert history.num_steps == len(history.log_ratios) == 4
    assert np.all(np.isfinite(history.elbo))
    assert all(np.all(np.isfinite(value)) for value in values(model))
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": (X, np.full_like(Y, np.inf))}, "Y holds inf in row 1"),
        ({"data": X}, r"data must be a pair \(X, Y\), or three, .* got ndarray"),
        ({"callbacks": [3]}, r"callbacks must be a sequence of functions, got \[3\]"),
        ({"optimizer": Adam}, "optimizer must be a Keras optimiser, .*, got <class"),
        (
            {"protocol": "slow"},
            "protocol must be one of fast, natural, papers, networks, vmg, got 'slow'",
        ),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    model = tiny_model(1)
    with pytest.raises(ValueError, match=message):
        run(model, arguments.pop("num_steps", 3), **arguments)


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
