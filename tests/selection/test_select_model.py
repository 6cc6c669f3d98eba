"""Choosing a model by what it predicts of rows that it has not seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gpflow
import numpy as np
import pytest
from scipy.stats import qmc
from scipy.stats import zscore as standardised
from sklearn.datasets import make_regression
from threadpoolctl import threadpool_info, threadpool_limits

from gpflow_dwp.exceptions import CholeskyError
from gpflow_dwp.layers import RegressionGPLayer
from gpflow_dwp.likelihoods import WarpedGaussian
from gpflow_dwp.selection import Candidate, Choice, policy, select_model
from gpflow_dwp.selection.candidates import SINGLE
from gpflow_dwp.selection.depth import _Way
from gpflow_dwp.selection.many_rows import _Many
from gpflow_dwp.selection.scores import RowScores
from gpflow_dwp.selection.single_layers import SingleLayers
from gpflow_dwp.selection.starts import num_lengthscales
from gpflow_dwp.selection.trainer import Trainer

pytestmark = pytest.mark.usefixtures("plain_single_layers")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
SIGNAL = np.sin(2.0 * X[:, :1])
NOISE = 0.1 * RNG.standard_normal((60, 1))
SHORT: dict[str, Any] = {"num_steps": 30, "progress": False}
OF_NOISE: dict[str, Any] = {**SHORT, "likelihood": "gaussian"}


@pytest.fixture
def few_deep_steps(eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deep candidates take one step in each stage, of the 30 that single layers may."""
    stages = tuple((0.03, most) for _, most in policy.STAGES)
    monkeypatch.setattr("gpflow_dwp.selection.policy.STAGES", stages)


@pytest.mark.usefixtures("few_deep_steps")
def test_a_single_layer_is_kept_where_depth_does_not_pay() -> None:
    """Catches a deep model that is kept although it predicts no better."""
    data = X, standardised(SIGNAL + NOISE)
    selection = select_model(data, width=2, kernel="Matern52", **OF_NOISE)
    deep = [each for each in selection.candidates if each.depth > 1]
    assert selection.best.depth == 1 and selection.best in selection.candidates
    assert selection.best.loo is not None and all(each.loo is not None for each in deep)
    assert "single layer" in selection.reason or "depth 1" in selection.reason
    model = selection.model
    np.testing.assert_allclose(selection.best.elbo, model.elbo(data, seed=0), rtol=1e-2)
    error = model.predict_f(X)[0] - data[1]
    assert np.sqrt(np.mean(np.square(error))) < 0.3


def test_depth_is_not_tried_for_what_is_next_to_nothing_beside_noise() -> None:
    """Catches the seconds of a trial that could not gain enough, were the function known."""
    data = X, standardised(X[:, :1] + 5.0 * NOISE)
    selection = select_model(data, kernel="SquaredExponential", **OF_NOISE)
    assert {each.depth for each in selection.candidates} == {1}
    assert "next to nothing beside noise" in selection.reason


def test_depth_of_few_rows_has_to_beat_every_single_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a chosen line that is easily beaten, as it flatters less than other kernels."""
    asked: list[RowScores] = []
    monkeypatch.setattr("gpflow_dwp.selection.search.halve", lambda *args: asked.append(args[2]))
    monkeypatch.setattr("gpflow_dwp.selection.policy.FEWEST_ITERATIONS", 10)
    rng = np.random.default_rng(3)
    inputs = rng.standard_normal((30, 4))
    line = inputs @ [[1.0], [0.5], [0.2], [0.0]] + 0.5 * rng.standard_normal((30, 1))
    found = select_model((inputs, standardised(line)), **OF_NOISE)
    best = max(each.loo.log_density for each in found.candidates if each.loo is not None)
    assert found.best.loo is not None and found.best.loo.log_density < best - 0.01
    assert asked[0].mean.log_density == best


def test_a_failure_on_all_rows_leaves_the_model_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a fit that ends where training on all rows was only to make it better."""
    fail = Mock(side_effect=CholeskyError("singular"))
    monkeypatch.setattr("gpflow_dwp.selection.search.Search.trained", fail)
    trainer = Trainer(X, SIGNAL, None, np.zeros(1), Choice(), 0, False, None)
    best = SimpleNamespace(
        start=SimpleNamespace(likelihood=gpflow.likelihoods.Gaussian()), candidate=SINGLE
    )
    given = {"trainer": trainer, "trials": [], "rows": None, "few": SimpleNamespace(best=best)}
    many: Any = SimpleNamespace(**given, conditioned=lambda found, *_: found)
    assert _Many.deep(many) is best


def test_depth_is_chosen_for_a_jump() -> None:
    """Catches a deep candidate that is not trained long enough, or starts where it cannot win."""
    line = np.linspace(-1.0, 1.0, 30)[:, None]
    jump = np.sign(line - 0.1) + 0.05 * np.random.default_rng(3).standard_normal((30, 1))
    rows = standardised(line), standardised(jump)
    given = {"kernel": "SquaredExponential", "likelihood": "gaussian", "progress": False}
    selection = select_model(rows, width=1, num_steps=200, **given)
    assert selection.best.depth == 2
    single = max(each.loo.log_density for each in selection.candidates if each.depth == 1)
    assert selection.best.loo.log_density > single
    assert selection.reason.startswith("Depth 2 predicts each row from all others better")
    quick = select_model(rows, effort="quick", **given)
    assert quick.best.depth == 1


def test_targets_are_warped_where_that_pays() -> None:
    """Catches a warp that is never tried, or whose Jacobian is left out of the comparison."""
    skewed = X, standardised(np.exp(1.5 * (SIGNAL + NOISE)))
    selection = select_model(skewed, depth=1, kernel="Matern52", **SHORT)
    assert selection.best.likelihood == "warped"
    assert isinstance(selection.model.likelihood, WarpedGaussian)
    # The process, its warp, heavy tails, and the model of all rows: no error differs by place.
    tried = ["gaussian", "warped", "warped_student_t", "warped"]
    assert [each.likelihood for each in selection.candidates] == tried
    far = np.full((1, 2), 50.0)
    mean, variance = selection.model.predict_y(far)
    assert np.isfinite(variance).all() and abs(float(mean[0, 0])) < 3.0 * np.ptp(skewed[1])


def test_a_warp_has_to_pay_in_rows_that_it_has_not_seen() -> None:
    """Catches a warp as steep as where no row is missed by far, which misses other rows by far."""
    points = qmc.Sobol(2, seed=np.random.default_rng(0)).random(512)
    swirl = np.sin(1.0 / (0.7 * points + 0.3).prod(1, keepdims=True))
    X, Y = standardised(points), standardised(swirl)
    given = {**SHORT, "kernel": "SquaredExponential", "effort": "quick"}
    model = select_model((X[:100], Y[:100]), **given).model
    assert -np.mean(model.predict_log_density((X[100:], Y[100:]))) < 0.0


def test_ratings_are_not_warped_away() -> None:
    """Catches a warp that is steep at ties, where a density has no upper limit."""
    ratings = np.clip(np.round(3.0 + SIGNAL + 8.0 * NOISE), 1.0, 5.0)
    selection = select_model((X, standardised(ratings)), depth=1, kernel="Matern52", **SHORT)
    mean, variance = selection.model.predict_y(X)
    reach = np.ptp(standardised(ratings))
    assert np.abs(mean).max() < reach and np.sqrt(variance).max() < reach
    step = np.diff(np.unique(standardised(ratings))).min()
    assert selection.best.loo is not None and selection.best.loo.log_density <= -np.log(step)


def test_tails_are_heavy_where_that_pays() -> None:
    """Catches a bound without the factor of the rows' precisions, and precisions that are lost."""
    outliers = np.where(np.arange(60)[:, None] % 12 == 0, 2.0, 0.0)
    outliers[::24] *= -1.0
    data = X, standardised(SIGNAL + NOISE + outliers)
    selection = select_model(data, depth=1, kernel="Matern52", **SHORT)
    assert selection.best.likelihood.endswith("student_t")
    model = selection.model
    np.testing.assert_allclose(selection.best.elbo, model.elbo(data, seed=0), rtol=1e-2)
    precisions = model.output_layer.precisions.numpy()
    assert precisions[::12].max() < 0.2 < 0.6 < np.median(precisions)
    gaussian = select_model(data, depth=1, kernel="Matern52", **OF_NOISE).model
    errors = (np.abs(each.predict_f(X)[0] - data[1]) for each in (model, gaussian))
    heavy, normal = (np.mean(each[outliers == 0.0]) for each in errors)
    assert heavy < 0.7 * normal


def test_heteroskedastic_noise_gains_where_there_is_such() -> None:
    """Catches such noise that is never chosen, and single layers with it that are not trained. Rows
    to the right are fifteen times as noisy."""
    x = np.linspace(-2.0, 2.0, 120)[:, None]
    noise = np.where(x > 0.0, 0.6, 0.04) * np.random.default_rng(1).standard_normal(x.shape)
    data = standardised(x), standardised(np.sin(2.0 * x) + noise)
    given = {"num_steps": 120, "kernel": "SquaredExponential", "depth": 1, "progress": False}
    selection = select_model(data, **given)
    usual, *_, chosen = selection.candidates
    assert chosen is selection.best and chosen.elbo > usual.elbo + 10.0
    assert (usual.likelihood, chosen.likelihood) == ("gaussian", "heteroskedastic")
    assert len(selection.history.elbo) == 120
    mean, variance = selection.model.predict_y(data[0])
    assert np.mean(variance[80:]) > 3.0 * np.mean(variance[:40])
    assert np.isfinite(mean).all()


def test_few_rows_have_one_lengthscale() -> None:
    """Catches lengthscales that fit the noise, and one where inputs differ."""
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((40, 8))
    alike = np.sum(inputs, axis=1, keepdims=True) + rng.standard_normal((40, 1))
    targets = standardised(alike), standardised(np.sin(2.0 * inputs[:, :1]) + 0.1 * alike)
    choices = [select_model((inputs, Y), depth=1, **OF_NOISE) for Y in targets]
    assert [choice.best.ard for choice in choices] == [False, True]
    assert num_lengthscales(choices[0].model.layers[0].kernel) == 1


def test_the_bound_of_little_noise_is_the_models() -> None:
    """Catches noise less than the jitter, which the process that is fitted lacks, one at its bound,
    where the next trial cannot start, and a trial that takes the models before it along."""
    inputs = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))
    data = standardised(inputs), standardised(np.sum(inputs, axis=1, keepdims=True) ** 3)
    selection = select_model(data, depth=1, kernel="SquaredExponential", **SHORT)
    np.testing.assert_allclose(selection.best.elbo, selection.model.elbo(data, seed=0), rtol=1e-6)
    mean, variance = selection.model.predict_y(data[0])
    assert np.max(np.abs(mean - data[1])) < 0.02 and np.max(variance) < 1e-3


@pytest.mark.usefixtures("eager")
def test_a_depth_that_is_asked_for_is_trained() -> None:
    """Catches a deep model that does not start at the single layer, and explains all as noise. With
    lengthscales of 1 the features of ten inputs tell nothing of each other, and it does."""
    inputs, targets = make_regression(200, 10, n_informative=1, noise=20.0, random_state=42)
    data = standardised(inputs), standardised(targets[:, None])
    short = {"likelihood": "gaussian", "num_steps": 2, "progress": False}
    selection = select_model(data, depth=2, kernel="Matern32", num_inducing=20, **short)
    assert (selection.best.depth, selection.best.kernel) == (2, "Matern32")
    assert selection.model.inducing_variable.num_inducing == 20
    assert len(selection.history.elbo) == 2
    assert np.mean(np.square(selection.model.predict_f(data[0])[0] - data[1])) < 0.25


@pytest.mark.usefixtures("eager")
def test_outputs_have_noises_of_their_own() -> None:
    noisy = SIGNAL + 5.0 * NOISE
    data = X, standardised(np.hstack([SIGNAL + 0.1 * NOISE, noisy]))
    settings = {**OF_NOISE, "num_steps": 12, "kernel": "Matern52"}
    model = select_model(data, depth=1, **settings).model
    assert isinstance(model.output_layer, RegressionGPLayer)
    first, second = model.likelihood.variance.numpy()
    assert first < second


def test_outputs_of_different_inputs_have_kernels_of_their_own() -> None:
    """Catches one kernel for outputs of different inputs: errors are six to ten times as large."""
    rng = np.random.default_rng(10)
    points = rng.uniform(-1.7, 1.7, (100, 3))
    truth = np.stack([np.sin(4.0 * points[:, 0]), points[:, 1] ** 2, points[:, 2]], axis=1)
    seen = truth[:60] + 0.05 * rng.standard_normal((60, 3))
    seen[:20, 0] = seen[20:30, 2] = np.nan
    settings = {**OF_NOISE, "kernel": "SquaredExponential"}
    selection = select_model((points[:60], seen), effort="quick", **settings)
    assert (selection.best.kernel, selection.best.ard) == ("SeparateIndependent", True)
    assert selection.reason.startswith("Each output has a kernel of its own")
    model = selection.model
    np.testing.assert_allclose(selection.best.elbo, model.elbo((points[:60], seen)), rtol=1e-3)
    error = np.sqrt(np.mean(np.square(model.predict_f(points[60:])[0] - truth[60:]), axis=0))
    assert np.all(error < [0.3, 0.1, 0.1])


def test_outputs_that_are_alike_share_a_kernel() -> None:
    """Catches parameters of many kernels that cost nothing."""
    rng = np.random.default_rng(10)
    points = rng.uniform(-1.7, 1.7, (25, 2))
    kernel = gpflow.kernels.SquaredExponential(lengthscales=[0.7, 1.5])
    root = np.linalg.cholesky(kernel(points) + 1e-2 * np.eye(25))
    data = points, standardised(root @ rng.standard_normal((25, 4)))
    settings = {**OF_NOISE, "kernel": "SquaredExponential"}
    selection = select_model(data, effort="quick", **settings)
    tried = [each.kernel for each in selection.candidates]
    assert "SeparateIndependent" in tried and selection.best.kernel == "SquaredExponential"


class Tobit(gpflow.likelihoods.Gaussian):
    """Has another density than the class that it inherits from."""


@pytest.mark.usefixtures("eager")
def test_a_class_of_the_users_is_not_the_one_that_it_inherits_from() -> None:
    """Catches a regression, which is refused, and a Gaussian in its place for several outputs."""
    data = X, np.hstack([SIGNAL, -SIGNAL])
    selection = select_model(data, depth=1, likelihood=Tobit(0.1), num_steps=2, progress=False)
    assert type(selection.model.likelihood) is Tobit


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"effort": "some"}, "effort must be one of"),
        ({"likelihood": "cauchy"}, "likelihood must be one of"),
        ({"candidates": Candidate()}, "candidates must be an instance of Sequence, got Candidate"),
        ({"patience": 0}, "patience must be a positive integer, got 0"),
        ({"validation_data": (X[:, :1], SIGNAL)}, "validation_data cannot be used: X must have 2"),
        ({"validation_data": X}, r"validation_data cannot be used: data must be a pair \(X, Y\)"),
        ({"likelihood": gpflow.likelihoods.Gaussian()}, "likelihood must be a name where the"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        select_model((X, SIGNAL), **settings)


@pytest.mark.usefixtures("eager")
def test_rows_of_no_weight_are_not_learned_from() -> None:
    """Catches weights that are lost on the way to one of the models that are tried."""
    spoilt = standardised(SIGNAL + NOISE)
    weights = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    data = X, np.where(weights[:, None] > 0.0, spoilt, -spoilt), weights
    for depth, width, num_steps in ((1, None, 12), (2, 2, 2)):
        settings = {**OF_NOISE, "num_steps": num_steps, "kernel": "Matern52"}
        model = select_model(data, depth=depth, width=width, **settings).model
        error = (model.predict_f(X)[0] - spoilt).numpy()
        assert np.sqrt(np.mean(np.square(error))) < 0.5


def test_rows_that_count_more_than_once_do_not_prove_that_there_is_no_noise() -> None:
    """Catches weights or copies by which all is signal, where inputs tell nothing."""
    rng = np.random.default_rng(1)
    inputs, noise = rng.standard_normal((40, 8)), standardised(rng.standard_normal((40, 1)))
    weights = np.where(np.arange(40) < 5, 3.0, 1.0)
    repeated = np.repeat(np.arange(40), weights.astype(int))
    both = (inputs, noise, weights), (inputs[repeated], noise[repeated])
    weighted, copied = (select_model(each, effort="quick", **OF_NOISE).model for each in both)
    assert weighted.likelihood.variance.numpy() > 0.3
    for one, other in zip(weighted.predict_f(inputs), copied.predict_f(inputs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_what_is_too_fast_for_few_rows_is_seen() -> None:
    """Catches a single start, too long for a fast wave, and starts from random rows alone, two of
    which come to a period."""
    rng = np.random.default_rng(1)
    t = rng.uniform(-1.7, 1.7, (800, 1))
    wave = standardised(np.sin(2.0 * np.pi * 100.0 * t / 3.4) + 0.2 * rng.standard_normal(t.shape))
    singles = SingleLayers(t, wave, None, np.zeros(1), Choice(num_steps=50), 0)
    (found,) = singles.plain(["SquaredExponential"])
    assert found.kernel[0].lengthscales < 0.02 and found.scores.mean.crps < 0.4


def test_held_out_rows_end_the_steps() -> None:
    """Catches held-out rows that are not looked at: of other labels, any learning is for worse."""
    labels = np.where(SIGNAL > 0.0, 1.0, 0.0)
    given = {"likelihood": gpflow.likelihoods.Bernoulli(), "validation_data": (X, 1.0 - labels)}
    selection = select_model((X, labels), depth=1, patience=3, **given, **SHORT)
    # The single layer of labels takes 15 steps, is judged after every one from the fifth on.
    assert selection.history.num_steps < 15
    assert "a callback ended the run" in selection.history.stop_reason


def test_blas_has_one_thread_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that spin for their turn took minutes beside two busy processes."""

    def threads() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    def noting(self: SingleLayers, kernels: Any) -> Any:
        seen.append(threads())
        raise InterruptedError

    seen: list[set[int]] = []
    monkeypatch.setattr(SingleLayers, "plain", noting)
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with pytest.raises(InterruptedError):
            select_model((X, standardised(SIGNAL + NOISE)), **SHORT)
        assert threads() == before
    assert seen == [{1}]


@pytest.mark.filterwarnings("ignore::gpflow_dwp.exceptions.CollapseWarning")
def test_interrupted_steps_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches Ctrl-C that ends one of many trainings, after which the next one begins."""
    ended = SimpleNamespace(stop_reason="interrupted after step 3")
    monkeypatch.setattr("gpflow_dwp.selection.trainer.fit_with_held_out", lambda *_, **__: ended)
    with pytest.raises(KeyboardInterrupt):
        select_model((X, standardised(SIGNAL + NOISE)), depth=2, kernel="Matern52", **OF_NOISE)


@pytest.mark.parametrize(
    ("leads", "past", "on"),
    [((-90.0, -80.0), False, True), ((-90.0, -60.0), True, True), ((49.0, 50.0), True, False)],
)
def test_a_trial_ends_where_it_leads_nowhere(
    monkeypatch: Any, leads: Any, past: bool, on: bool
) -> None:
    """Catches deep models that are given up although they come nearer, or trained in vain. That is
    told at the ends of stages: in the middle scores may be lower."""

    def scores(lead: float) -> RowScores:
        return RowScores(np.full(400, lead / 400.0), np.full(400, 2.0))

    monkeypatch.setattr("gpflow_dwp.selection.depth._scores", lambda *_: scores(leads[0]))
    way = _Way(None, scores(0.0), 3_000)
    look = way.look(400)
    assert not any(look(SimpleNamespace(model=None)) for _ in range(20))
    assert way.leads_past
    assert way.leads_on
    way.follow(400, scores(leads[1]))
    assert (way.leads_past, way.leads_on) == (past, on)
    few = _Way(None, RowScores(np.zeros(100), np.ones(100)), 3_000)
    for steps, lead in ((400, -10.0), (1_400, 0.0)):
        few.follow(steps, RowScores(np.full(100, lead / 100.0), np.ones(100)))
    assert few.leads_past  # 6 of 2 nats, at 5.5 a doubling


@pytest.mark.usefixtures("few_deep_steps")
def test_what_inputs_tell_nothing_of_has_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a rough function in place of noise, and a mean that is taken to be known."""
    monkeypatch.setattr("gpflow_dwp.selection.search.CANDIDATE_KERNELS", ("Matern32",))
    rng = np.random.default_rng(10)
    data = rng.uniform(-1.5, 1.5, (60, 2)), standardised(rng.standard_normal((60, 1)))
    given = [Candidate(depth=1), Candidate(depth=2)]
    found = select_model(data, candidates=given, **SHORT)
    assert isinstance(found.model.output_layer.kernel, gpflow.kernels.Constant)
    np.testing.assert_allclose(found.model.predict_f(X)[1], 1.0 / 61.0, rtol=0.01)
    tried = found.candidates
    assert tried[-1].depth == 2 and tried[-1].kernel != "Constant"
