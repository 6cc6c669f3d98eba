"""The regressor: raw units, mixtures, several outputs, scikit-learn's tools."""

from __future__ import annotations

import copy
import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import gpflow
import numpy as np
import pandas
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gpflow_dwp.estimator import DeepWishartRegressor
from gpflow_dwp.estimator._numbers import exact_numbers
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.evaluation.mixture import mixture_cdf
from gpflow_dwp.models.mixture_posterior import MixturePosterior
from gpflow_dwp.training import EarlyStopping

pytestmark = pytest.mark.usefixtures("eagerly", "untraced")

SMALL: dict[str, Any] = {
    "depth": 2,
    "kernel": "SquaredExponential",
    "likelihood": "gaussian",
    "num_inducing": 15,
    "num_prediction_samples": 10,
    "num_steps": 5,
    "random_state": 0,
}
SINGLE: dict[str, Any] = {**SMALL, "depth": 1, "num_steps": 2}
FEW: dict[str, Any] = {**SMALL, "num_inducing": 5, "num_samples": 1, "num_prediction_samples": 3}
RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (40, 2)) * [1.0, 100.0] + [0.0, 1_000.0]
Y = 500.0 + 100.0 * np.sin(X[:, 0]) + 20.0 * RNG.standard_normal(40)


@pytest.fixture(scope="module")
def regressor(eagerly: None) -> DeepWishartRegressor:
    return DeepWishartRegressor(**SMALL).fit(X, Y)


@pytest.fixture(scope="module")
def two_outputs(eagerly: None) -> DeepWishartRegressor:
    return DeepWishartRegressor(**SINGLE).fit(X, np.stack([Y, -0.01 * Y], 1))


def test_predictions_are_those_of_the_mixture_in_raw_units(regressor: DeepWishartRegressor) -> None:
    inputs = (X - X.mean(axis=0)) / X.std(axis=0)
    components = regressor.model_.posterior(seed=regressor._seed).predict_warped_components(inputs)
    means, variances = (part.numpy()[..., 0] for part in components)
    means, variances = Y.mean() + Y.std() * means, Y.var() * variances
    mean, std = regressor.predict(X, return_std=True)
    quantiles = regressor.predict_quantiles(X, [0.1, 0.8])

    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(std, np.sqrt(variances.mean(axis=0) + means.var(axis=0)), rtol=1e-10)
    np.testing.assert_array_equal(regressor.predict(X), mean)
    assert quantiles.shape == (40, 2)
    for column, level in enumerate((0.1, 0.8)):
        below = mixture_cdf(quantiles[:, column], means, variances)
        np.testing.assert_allclose(below, level, rtol=1e-8)
    densities = np.log(stats.norm.pdf(Y, means, np.sqrt(variances)).mean(axis=0))
    np.testing.assert_allclose(regressor.predict_log_density(X, Y), densities, rtol=1e-8)
    assert regressor.score(X, Y) > 0.8
    assert regressor.history_.num_steps == SMALL["num_steps"]
    assert regressor.n_features_in_ == 2


def test_intervals_are_quantiles(
    regressor: DeepWishartRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower, upper = regressor.predict_interval(X, coverage=0.9)

    quantiles = regressor.predict_quantiles(X, (0.05, 0.95))
    np.testing.assert_allclose(np.stack([lower, upper], 1), quantiles, rtol=1e-12)
    monkeypatch.setattr("gpflow_dwp.evaluation.raw_units._BLOCK", 7)
    np.testing.assert_allclose(regressor.predict_interval(X, 0.9), [lower, upper], rtol=1e-9)
    for coverage in (0.0, 1.0, np.nan):
        for method in (regressor.predict_interval, regressor.predict_noise):
            with pytest.raises(ValueError, match="coverage must be .* strictly between 0 and 1"):
                method(X, coverage)
    with pytest.raises(ValueError, match="levels must lie strictly between 0 and 1"):
        regressor.predict_quantiles(X, [0.5, 1.0])


def test_samples_have_the_predictive_moments(regressor: DeepWishartRegressor) -> None:
    rows = X[:3]
    # The mixture of a single call has ten components; that of the samples has one for each.
    posterior = regressor.model_.posterior(2_000, seed=1)
    moments = posterior.predict_y(regressor.input_standardiser_.transform(rows))
    mean = regressor.output_standardiser_.inverse_transform(moments[0])[:, 0]
    std = Y.std() * np.sqrt(moments[1].numpy()[:, 0])

    samples = regressor.sample_y(rows, 2_000, random_state=3)

    assert samples.shape == (3, 2_000)
    four_standard_errors = 4.0 * std * np.sqrt(2.0 / 2_000)
    assert (np.abs(samples.mean(axis=1) - mean) < four_standard_errors).all()
    np.testing.assert_allclose(samples.std(axis=1), std, rtol=0.15)
    np.testing.assert_array_equal(regressor.sample_y(rows, 4), regressor.sample_y(rows, 4))
    assert not np.array_equal(regressor.sample_y(rows), regressor.sample_y(rows, random_state=1))
    with pytest.raises(ValueError, match="n_samples must be a positive integer, got 0"):
        regressor.sample_y(rows, 0)


def test_several_outputs_have_their_own_units_and_noise(two_outputs: DeepWishartRegressor) -> None:
    mean, std = two_outputs.predict(X, return_std=True)
    assert mean.shape == std.shape == (40, 2)
    assert abs(mean[:, 0].mean() / mean[:, 1].mean() + 100.0) < 10.0
    assert two_outputs.model_.likelihood.variance.shape == (2,)
    assert two_outputs.predict_quantiles(X[:3], [0.5]).shape == (3, 2, 1)
    assert two_outputs.predict_interval(X[:3])[0].shape == (3, 2)
    assert two_outputs.sample_y(X[:3], 5).shape == (3, 2, 5)
    assert two_outputs.predict_log_density(X[:3], mean[:3]).shape == (3,)
    scale = two_outputs.output_standardiser_.scale
    np.testing.assert_allclose(scale, [Y.std(), 0.01 * Y.std()])


def test_warped_targets_are_predicted_in_raw_units() -> None:
    """Catches quantiles and densities of warped targets, also after a pickle."""
    regressor = DeepWishartRegressor(**{**SINGLE, "likelihood": "warped_student_t"}).fit(X, Y)
    regressor.model_.likelihood.warp.skewness.assign([0.7])
    rows = X[:6]

    mean, std = regressor.predict(rows, return_std=True)
    samples = regressor.sample_y(rows[:3], 4_000)
    quantiles = regressor.predict_quantiles(rows, [0.1, 0.8])
    again = pickle.loads(pickle.dumps(regressor))

    error = std[:3] / np.sqrt(4_000)
    assert (np.abs(samples.mean(axis=1) - mean[:3]) < 5.0 * error).all()
    for column, level in enumerate((0.1, 0.8)):
        below = (samples < quantiles[:3, [column]]).mean(axis=1)
        np.testing.assert_allclose(below, level, atol=0.03)
    step = 1e-4
    near = quantiles[:, 0]
    inputs = regressor.input_standardiser_.transform(rows)
    ends = PredictiveDistribution.of(regressor._posterior(), inputs, regressor.output_standardiser_)
    slope = (ends.cdf((near + step)[:, None]) - ends.cdf((near - step)[:, None]))[:, 0] / (2 * step)
    np.testing.assert_allclose(np.exp(regressor.predict_log_density(rows, near)), slope, rtol=1e-4)
    np.testing.assert_array_equal(again.predict_quantiles(rows, [0.1, 0.8]), quantiles)


def test_predictions_of_threads_are_those_of_one_and_follow_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Catches bijectors that threads share, draws that are made at each call, and old ones."""
    monkeypatch.setattr(MixturePosterior, "is_kept", False)  # these are traced
    short = {**FEW, "num_steps": 1, "kernel": gpflow.kernels.SquaredExponential()}
    regressor = DeepWishartRegressor(**short).fit(X, Y)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: regressor.predict(X, return_std=True), range(4)))
    for mean, std in found[1:]:
        np.testing.assert_array_equal(mean, found[0][0])
        np.testing.assert_array_equal(std, found[0][1])
    posterior = regressor._posterior()
    assert regressor._posterior() is posterior

    model = regressor.model_
    model.layers[0].kernel.variance.assign(3.0 * model.layers[0].kernel.variance)
    assert regressor._posterior() is not posterior
    assert not np.allclose(regressor.predict(X), found[0][0])


def test_heteroskedastic_noise_is_predicted_in_raw_units() -> None:
    """Catches a likelihood that does not arrive, and a scale of noise in the targets' unit."""
    own = {"kernel": gpflow.kernels.Matern52(), "likelihood": "heteroskedastic"}
    regressor = DeepWishartRegressor(**{**SINGLE, **own}).fit(X, Y)
    function, of_noise = regressor.model_.output_layer.kernels
    assert regressor.model_.likelihood.latent_dim == 2
    assert type(of_noise) is gpflow.kernels.Matern52 and of_noise is not function

    mean, std = regressor.predict(X, return_std=True)
    low, high = regressor.predict_interval(X[:3], 0.8)
    samples = regressor.sample_y(X[:3], 4_000)
    again = pickle.loads(pickle.dumps(regressor))

    assert samples.shape == (3, 4_000)
    error = std[:3] / np.sqrt(4_000) + 0.1 * std[:3]  # the mixture is of few draws
    assert (np.abs(samples.mean(axis=1) - mean[:3]) < 5.0 * error).all()
    inside = ((samples > low[:, None]) & (samples < high[:, None])).mean(axis=1)
    np.testing.assert_allclose(inside, 0.8, atol=0.12)
    functions = regressor.predict(X, return_std=True, include_noise=False)[1]
    noise, lower, upper = regressor.predict_noise(X, 0.9)
    np.testing.assert_allclose(noise**2 + functions**2, std**2)
    assert (lower < upper).all()
    np.testing.assert_array_equal(again.predict(X), mean)


class Unpickler(pickle.Unpickler):
    """Notes which packages a pickle asks for."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.modules: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.modules.add(module.split(".")[0])
        return super().find_class(module, name)


def test_a_pickle_predicts_the_same(
    regressor: DeepWishartRegressor, two_outputs: DeepWishartRegressor
) -> None:
    for fitted in (regressor, two_outputs):
        unpickler = Unpickler(io.BytesIO(pickle.dumps(fitted)))
        again = unpickler.load()
        assert unpickler.modules <= {"gpflow_dwp", "numpy"}
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
        np.testing.assert_array_equal(again.sample_y(X[:2], 3), fitted.sample_y(X[:2], 3))
        np.testing.assert_array_equal(again.history_.elbo, fitted.history_.elbo)
    assert pickle.loads(pickle.dumps(DeepWishartRegressor(depth=5))).depth == 5


class Wiggly(gpflow.kernels.SquaredExponential):
    """A kernel of one's own."""


def test_kernels_are_copied_and_come_back() -> None:
    kernel = Wiggly(variance=2.0)
    short = {**FEW, "num_steps": 1}
    regressor = DeepWishartRegressor(**{**short, "kernel": kernel}).fit(X, Y)
    kernels = [layer.kernel for layer in regressor.model_.layers]
    assert [type(each) for each in kernels] == [Wiggly, Wiggly]
    assert kernel.variance.numpy() == 2.0
    assert kernels[0].variance.numpy() != kernels[1].variance.numpy()

    again = pickle.loads(pickle.dumps(regressor))
    np.testing.assert_array_equal(again.predict(X), regressor.predict(X))

    per_layer = [gpflow.kernels.SquaredExponential(lengthscales=[1.0, 2.0]), Wiggly()]
    several = clone(DeepWishartRegressor(**{**short, "kernel": per_layer})).fit(X, Y)
    assert several.model_.layers[0].kernel.lengthscales.shape == (2,)
    assert isinstance(copy.deepcopy(several).model_.layers[1].kernel, Wiggly)


def test_single_precision() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        regressor = DeepWishartRegressor(**SINGLE).fit(X, Y)
        again = pickle.loads(pickle.dumps(regressor))

        assert regressor.model_.inducing_variable.Z.dtype == np.float32
        assert regressor.predict(X).dtype == np.float64
        np.testing.assert_array_equal(again.predict(X), regressor.predict(X))


def test_seeds() -> None:
    short = {**FEW, "depth": 1, "num_steps": 1, "kernel": gpflow.kernels.Matern52()}
    first, same, other = (
        DeepWishartRegressor(**{**short, "random_state": seed}).fit(X, Y)
        for seed in (0, 0, np.random.RandomState(5))
    )

    np.testing.assert_array_equal(same.predict(X), first.predict(X))
    assert not np.allclose(other.predict(X), first.predict(X))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 0}, "depth must be a positive integer, got 0"),
        ({"num_steps": 2.5}, "num_steps must be a positive integer, got 2.5"),
        ({"num_inducing": 0}, "num_inducing must be a positive integer"),
        ({"num_prediction_samples": 0}, "num_prediction_samples must be a positive integer"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be a positive integer"),
        ({"early_stopping": "yes"}, "early_stopping must be True or False"),
        ({"verbose": "no"}, "verbose must be True or False, got 'no'"),
        ({"validation_fraction": 1.0}, "validation_fraction must be .* between 0 and 1"),
        (
            {"early_stopping": True, "validation_fraction": 0.99},
            "validation_fraction=0.99 of 40 rows cannot be held out",
        ),
        ({"num_samples": -1}, "num_samples must be a positive integer"),
        ({"batch_size": 0}, "batch_size must be a positive integer"),
        ({"width": 0}, "width must be a positive integer"),
        ({"whiten": "no"}, "whiten must be True or False, got 'no'"),
        ({"kernel": "RBF"}, "kernel must be one of AdditiveMatern32, .* got 'RBF'"),
        ({"kernel": 3}, "kernel must be a name, a kernel or a sequence of kernels, got 3"),
        ({"posterior": "Z", "depth": 1}, "posterior must be one of GW, A, AB, got 'Z'"),
        ({"likelihood": gpflow.likelihoods.Poisson()}, "got Poisson, which is of whole numbers"),
    ],
)
def test_bad_arguments_are_named_in_fit(arguments: dict[str, Any], message: str) -> None:
    regressor = DeepWishartRegressor(**{**SMALL, **arguments})

    with pytest.raises(ValueError, match=message):
        regressor.fit(X, Y)
    with pytest.raises(NotFittedError):
        regressor.predict(X)


def test_tell_holds_out_what_fit_did() -> None:
    """Catches a tenth of the rows that is lost each time."""
    X = np.linspace(0.0, 1.0, 20)[:, None]
    given = {"likelihood": "heteroskedastic", "early_stopping": True, "num_steps": 2}
    regressor = DeepWishartRegressor(depth=1, kernel="Matern52", random_state=0, **given)
    regressor.fit(X, np.sin(3.0 * X[:, 0]))
    for count in (18, 19, 20):
        assert regressor.model_.num_data == count
        regressor.tell([[0.5]], [1.0])


@pytest.mark.parametrize("kernel", ["SquaredExponential", gpflow.kernels.SquaredExponential()])
def test_early_stopping_ends_the_steps_and_keeps_the_best(
    monkeypatch: pytest.MonkeyPatch, kernel: Any
) -> None:
    """Catches a way to train, by name or by kernel, that does not stop or judges in raw units."""
    made: list[EarlyStopping] = []

    def note(data: Any, **arguments: Any) -> EarlyStopping:
        assert abs(data[0]).max() < 3.0 and abs(data[1]).max() < 3.0
        made.append(EarlyStopping(data, lambda *_: -len(made[0].values), **arguments))
        return made[0]

    monkeypatch.setattr("gpflow_dwp.training.early_stopping.EarlyStopping", note)
    stopping = {"early_stopping": True, "validation_fraction": 0.2, "n_iter_no_change": 2}
    settings = {**FEW, "kernel": kernel, "num_steps": 6, **stopping}
    regressor = DeepWishartRegressor(**settings).fit(X, Y, sample_weight=np.full(40, 2.0))

    assert regressor.model_.num_data == 32
    # Of 6 steps the first half are annealing, or a sixth of those of a kernel that is given.
    first = 3 if isinstance(kernel, str) else 1
    assert regressor.history_.stop_reason == f"a callback ended the run after step {first + 2}"
    assert made[0].steps == [first, first + 1, first + 2] and made[0].best_step == first


def test_warm_start_goes_on_from_the_model_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a new model, new units or old rows, also with weights and after a pickle.

    And one that fails, and does not leave the model as it was.
    """
    short = {**FEW, "depth": 1, "num_steps": 2, "warm_start": True}
    short["kernel"] = gpflow.kernels.SquaredExponential()  # nothing is chosen
    regressor = DeepWishartRegressor(**short).fit(X[:30], Y[:30])
    mean = regressor.predict(X)
    regressor = pickle.loads(pickle.dumps(regressor))
    scale = regressor.output_standardiser_.scale
    before = regressor.model_.inducing_variable.Z.numpy()

    for weights in (np.full(40, 2.0), None):
        regressor.set_params(num_steps=1).fit(X, Y, sample_weight=weights)
        assert regressor.model_.num_data == 40
        assert regressor.history_.num_steps == 1
        assert regressor.output_standardiser_.scale == scale == Y[:30].std()
    # A new start would have other inducing inputs.
    assert 0.0 < abs(regressor.model_.inducing_variable.Z.numpy() - before).max() < 0.3
    assert not np.array_equal(regressor.predict(X), mean)
    with pytest.raises(ValueError, match="expecting 2 features"):
        regressor.fit(X[:, :1], Y)
    with pytest.raises(ValueError, match=r"shape \['N'\] to go on, as at first, got \[40, 2\]"):
        regressor.fit(X, np.stack([Y, Y], 1))

    def stop(model: Any, *_: Any, **__: Any) -> None:
        model.likelihood.variance.assign(2.0 * model.likelihood.variance)
        raise KeyboardInterrupt

    mean, history = regressor.predict(X), regressor.history_
    with monkeypatch.context() as patch:
        patch.setattr("gpflow_dwp.estimator._base.fit_with_held_out", stop)
        with pytest.raises(KeyboardInterrupt):
            regressor.fit(X[:20] + 5.0, Y[:20])
    np.testing.assert_array_equal(regressor.predict(X), mean)
    assert regressor.history_ is history and regressor.model_.num_data == 40
    after = regressor.model_.inducing_variable.Z.numpy()
    again = regressor.set_params(warm_start=False).fit(X, Y).model_
    assert abs(again.inducing_variable.Z.numpy() - after).max() > 0.3


def test_a_fit_that_fails_leaves_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches columns, units or counts of data whose model there is not."""
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    regressor = DeepWishartRegressor(**SINGLE).fit(frame, Y)
    before, state = regressor.predict(frame), dict(vars(regressor))
    with pytest.raises(ValueError, match="constant"):
        regressor.fit(frame.assign(c=["x", "y"] * 20), np.ones(40))
    interrupted = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("gpflow_dwp.estimator.regressor.take_in", interrupted)
    with pytest.raises(KeyboardInterrupt):
        regressor.tell(frame[:2], [np.nan, 1.0])
    now = vars(regressor)
    assert now.keys() == state.keys() and all(now[name] is state[name] for name in state)
    np.testing.assert_array_equal(regressor.predict(frame), before)


def test_bad_data_are_refused(regressor: DeepWishartRegressor) -> None:
    """Those that scikit-learn's own checks do not try."""
    for method in (regressor.predict, regressor.predict_interval, regressor.sample_y):
        with pytest.raises(ValueError, match=r"X must not be too far .*, got -1.7e.308 in row 2"):
            method([[0.0, 1_000.0], [-1.7e308, 1_000.0]])
    days = np.datetime64("2020-01-01") + np.arange(40)
    for dates in (days, pandas.Series(days), pandas.DataFrame({"a": Y, "b": days})):
        with pytest.raises(ValueError, match=r"y(\['b'\])? must hold numbers, got datetime64"):
            DeepWishartRegressor(**SMALL).fit(X, dates)
    for inputs, name in (  # identifiers that scikit-learn makes a constant column of
        (2**53 + np.arange(40)[:, None], "X"),
        ([[2**60 + i] for i in range(40)], "X"),
        (pandas.DataFrame({"a": X[:, 0], "id": 2**60 + np.arange(40)}), r"X\['id'\]"),
    ):
        with pytest.raises(ValueError, match=f"{name} must hold numbers that stay apart in floa"):
            DeepWishartRegressor(**SMALL).fit(inputs, Y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        regressor.predict_log_density(X, np.where(np.arange(40) == 3, np.nan, Y))
    with pytest.raises(ValueError, match=r"y must have shape \[40\], got \[40, 1\]"):
        regressor.predict_log_density(X, Y[:, None])


def test_times_are_seconds() -> None:
    """Catches times that are refused, or not the same seconds in predictions as in training."""
    times = pandas.date_range("2020-01-01", periods=40, freq="h")
    seconds = (times - pandas.Timestamp(0)).total_seconds().to_numpy()
    expected = DeepWishartRegressor(**SINGLE).fit(np.stack([X[:, 0], seconds], 1), Y)
    frame = pandas.DataFrame({"x": X[:, 0], "when": times})
    with pytest.warns(UserWarning, match=r"seconds since 1970 \(UTC\): when\.$"):
        regressor = DeepWishartRegressor(**SINGLE).fit(frame, Y)
    assert list(regressor.feature_names_in_) == ["x", "when"]
    zoned = frame.assign(when=times.tz_localize("UTC").tz_convert("Asia/Tokyo"))
    for inputs in (frame, zoned):
        mean = regressor.predict(inputs)
        np.testing.assert_array_equal(mean, expected.predict(np.stack([X[:, 0], seconds], 1)))
    far = np.array(["1600-01-01", "9999-12-31"], "M8[s]")  # more than 2**63 nanoseconds
    for each in (far, pandas.Series(far).dt.tz_localize("UTC")):
        found = exact_numbers("X", each, times="taken")
        np.testing.assert_array_equal(found, far.astype(np.int64))
    with pytest.raises(ValueError, match=r"X\['when'\] .* less than a microsecond apart"):
        regressor.fit(frame.assign(when=times[0] + np.arange(40) * pandas.Timedelta(1, "ns")), Y)
    with pytest.raises(ValueError, match=r"X\['when'\] must hold numbers, got timedelta64"):
        regressor.fit(frame.assign(when=times - times[0]), Y)


@pytest.mark.usefixtures("plain_single_layers")
def test_observations_may_be_missing() -> None:
    """Catches masked or missing entries that are refused, or count in a column's mean and scale."""
    clean = np.stack([np.sin(X[:, 0]), 10.0 + 3.0 * np.cos(X[:, 0])], 1)
    seen = clean.copy()
    seen[:12, 0] = -999.0
    seen[30:, 1] = np.nan

    settings = {"depth": 1, "kernel": "SquaredExponential", "likelihood": "gaussian"}
    model = DeepWishartRegressor(num_steps=50, random_state=0, **settings)
    mean = model.fit(X, np.ma.masked_equal(seen, -999.0)).predict(X)

    np.testing.assert_allclose(
        model.output_standardiser_.mean, [seen[12:, 0].mean(), seen[:30, 1].mean()]
    )
    assert np.abs(mean - clean).mean(axis=0) == pytest.approx(0.0, abs=0.3)
    with pytest.raises(ValueError, match="missing in all rows of a column"):
        model.fit(X, clean * [1.0, np.nan])
