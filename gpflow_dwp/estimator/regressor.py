"""Regression behind scikit-learn's interface."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from gpflow.likelihoods import Gaussian, Likelihood
from sklearn.base import RegressorMixin
from sklearn.utils import _safe_indexing, check_array, check_consistent_length

from gpflow_dwp.base import Array
from gpflow_dwp.estimator._base import DeepWishartEstimator
from gpflow_dwp.estimator._further_runs import take_in
from gpflow_dwp.estimator._models import whole_or_not
from gpflow_dwp.estimator._numbers import exact_numbers
from gpflow_dwp.estimator._predictions import PredictsNumbers, varying_columns
from gpflow_dwp.estimator.classifier import DeepWishartClassifier
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.exceptions import TargetWarning
from gpflow_dwp.likelihoods import HeteroskedasticGaussian
from gpflow_dwp.likelihoods.observed import AcceptedObservations, accepted_observations
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.selection.observations import odd_targets, recorded_steps, weights_of_evidence
from gpflow_dwp.validation import are_constant, as_real_array, check_integers, check_shares

__all__ = ["DeepWishartRegressor"]


class DeepWishartRegressor(RegressorMixin, DeepWishartEstimator, PredictsNumbers):
    """A deep Wishart process for regression, as a scikit-learn estimator.

    Inputs and targets are standardised on the rows that ``fit`` is given; all predictions are in
    raw units and are of observations, noise included. The predictive distribution of a target, or
    under a warped likelihood of a function of it, is a mixture of normals, one for each of
    ``num_prediction_samples`` draws of all layers; the draws are the same at every call.

    >>> import numpy as np
    >>> from gpflow_dwp.estimator import DeepWishartRegressor
    >>> X = np.linspace(0.0, 6.0, 30)[:, None]
    >>> regressor = DeepWishartRegressor(effort="quick", random_state=0)
    >>> mean, std = regressor.fit(X, np.sin(X[:, 0])).predict(X, return_std=True)
    >>> mean.shape, std.shape
    ((30,), (30,))

    What is "auto" is chosen by what models predict of each row from all others, for which no rows
    are held out: see :func:`gpflow_dwp.selection.select_model`.

    :param depth: GP layers of the equivalent deep GP; like all others to ``num_samples`` as for
        :class:`gpflow_dwp.selection.Choice`.
    :param posterior: Family of approximate posteriors: "GW", "A" or "AB".
    :param whiten: Whether posteriors are relative to the prior's scale: faster, less flexible.
    :param output: What the output layer's posterior comes from: "pseudo_targets" that are learned,
        or a "regression" on all rows.
    :param likelihood: "gaussian"; "noise_free" for the runs of a simulator, where a nugget is no
        larger than it must be (in a single layer at most 1e-4 of the variance), and one output may
        be warped; "warped", "student_t", "warped_student_t" or "heteroskedastic"; "auto" for the
        one that predicts best, of those with noise. Labels have their own.
    :param effort: "quick" tries single layers only, "default" depth 2 as well, "thorough" takes
        more steps and tries depth 3, too.
    :param width: Degrees of freedom of every Wishart layer.
    :param kernel: A name, or "auto"; or a GPflow kernel, of which every layer gets a copy, or
        ``depth`` names and kernels: these act on standardised inputs and stay as they are.
    :param candidates: Models to try in place of the usual ones, with depth and kernel "auto": see
        :class:`gpflow_dwp.selection.Candidate`.
    :param mean_function: GPflow's, from raw inputs (E numbers, categories as indicators) to raw
        outputs, [N, Q]: a trend, which stays as it is, under Gaussian noise or none. Or "linear":
        a line that is estimated, with its uncertainty, in a single layer. Its slopes, by
        standardised inputs, have a normal prior of one variance, which is learned: it is a part of
        the kernel "AdditiveMatern52", which is taken unless another sum is asked for.
    :param num_inducing: Inducing points, at most.
    :param inducing: Where they start: on a "subset" of the rows, or on "kmeans" centres.
    :param num_steps: Gradient steps of a model that takes such, at most.
    :param batch_size: Rows of a minibatch.
    :param num_samples: Draws that estimate the bound in training.
    :param num_prediction_samples: Draws that make up a predictive mixture.
    :param early_stopping: Whether rows are held out, and gradient steps end when the log density of
        these gets no better; the best parameters are kept. It is judged 20 times in a run, after
        the annealing. What "auto" is chosen is still for the bound to say. A single layer with
        Gaussian noise and one target, which L-BFGS fits, has nothing to stop.
    :param validation_fraction: Share of the rows that are held out then: of labels, within each
        class. Their weights do not count.
    :param n_iter_no_change: After how many judgements without a better density steps end.
    :param warm_start: Whether another call of ``fit`` goes on from the fitted model: it gets the
        rows, in the units of the first fit, and takes ``num_steps`` gradient steps more. Nothing is
        chosen anew, so other arguments of the model no longer matter; the seed, too, is that of the
        first fit.
    :param failures: Whether a classifier learns where runs fail, which are rows without an output.
        Such rows are left out and counted in any case.
    :param random_state: Seed or generator for the start, the draws and the minibatches; None for
        another result at every call of ``fit``, which also sets TensorFlow's global seed.
    :param verbose: Whether to show a progress bar.

    Attributes of a fitted regressor: ``model_`` (the GPflow model, in standardised units),
    ``history_`` (its training), ``candidates_`` (all models that were tried, with their bounds and
    leave-one-out scores) and ``reason_`` (why this one, in a sentence; neither where kernels are
    given), ``num_failed_`` (runs without an output), ``failure_classifier_`` (None where there is
    nothing to learn), ``resolution_`` (the step to which each target was recorded, 0 for none,
    [Q]), ``input_standardiser_``, ``output_standardiser_``, ``n_features_in_``,
    ``feature_names_in_`` where the inputs had names, and ``columns_`` (whose ``levels`` are those
    of categories; None of numbers alone).
    """

    @whole_or_not
    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
    ) -> DeepWishartRegressor:
        """Train a new model, or with ``warm_start`` the one there is.

        Runs of equal inputs are joined to their mean where ``likelihood`` is "gaussian": what they
        tell of functions and noise is all in it, in their number and in their pooled variance.

        :param X: Inputs, [N, D]. Columns of times, as in a frame of pandas or polars, are seconds
            since 1970 (UTC), with a warning that says so. Text and pandas' categories are made an
            indicator of each level; what is predicted has to be such a frame, of the same levels.
        :param y: Targets, [N], or [N, Q] for several outputs, each with a noise of its own. NaN, or
            what is masked, are missing; a row without any is a run that failed, which is left out.
            Constant outputs are no part of the model, and predicted without any variance.
        :param sample_weight: How often each row counts, [N]: 2 is for a row that comes twice. None
            for once.
        :param noise_std: Standard deviation of each target's noise, [N], if it is known: nothing is
            learned of it then. At least a thousandth of the targets' deviation. Observations that
            are predicted have the noise of a run of average precision.
        :return: The regressor.
        :raises ValueError: If the data are not finite numbers of one length with at least two
            rows, integers beyond 2**53 would be equal in float64, all runs failed, all targets are
            constant, an argument of the constructor cannot be used, or a model that goes on was
            fitted to other numbers of columns.
        """
        if isinstance(self.likelihood, Likelihood):
            accepted = accepted_observations(self.likelihood).expected
            if accepted != AcceptedObservations().expected:
                raise ValueError(
                    "likelihood must be of any finite numbers, as targets are standardised, got "
                    f"{type(self.likelihood).__name__}, which is of {accepted}: build that model "
                    "with gpflow_dwp.build_deep_wishart_process."
                )
        everything = X = self._inputs_to_fit(X)
        y = exact_numbers("y", y)
        failed = _failed_runs(y)
        if failed.any():
            check_consistent_length(X, y, sample_weight)
            if failed.all():
                raise ValueError("y must hold the output of a run, got NaN alone: all runs failed.")
            kept = np.flatnonzero(~failed)
            X, y = _safe_indexing(X, kept), _safe_indexing(y, kept)
            if sample_weight is not None:
                sample_weight = _safe_indexing(sample_weight, kept)
            warnings.warn(
                f"{failed.sum()} of {len(failed)} runs have no output and are left out.",
                TargetWarning,
                stacklevel=3,
            )
        checks: dict[str, Any] = {"multi_output": True, "y_numeric": True, "ensure_min_samples": 2}
        if np.asarray(y).shape[1:] > (1,):
            may_miss = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
            checks = {
                "validate_separately": ({"dtype": np.float64, "ensure_min_samples": 2}, may_miss)
            }
        noise_std = self._check_noise(noise_std, len(failed), sample_weight)
        noise_std = None if noise_std is None else noise_std[~failed]
        inputs, y, weights = self._check_rows(X, y, sample_weight, **checks)
        name = getattr(y, "name", None)
        targets = np.asarray(y, np.float64)
        if self._goes_on() and targets.shape[1:] != self._target_shape:
            expected = ["N", *self._target_shape]
            raise ValueError(
                f"y must have shape {expected} to go on, as at first, got {list(targets.shape)}."
            )
        columns = targets.reshape(len(targets), -1)
        constants = self._constants if self._goes_on() else _constants_of(columns)
        steps = recorded_steps(columns)
        if self.likelihood == "noise_free" or noise_std is not None:  # all digits count
            steps = np.zeros_like(steps)
        columns, varies = varying_columns(columns, constants), np.isnan(constants)
        if noise_std is not None and columns.shape[1] > 1:
            raise ValueError(f"noise_std must be of one target, got {columns.shape[1]}.")
        self._train(inputs, columns, weights, None, noise_std=noise_std)
        self._constants: Array = constants
        self.num_failed_ = 0
        self.failure_classifier_: DeepWishartClassifier | None = None
        self._all_runs: tuple[Array, npt.NDArray[np.bool_]] | None = None
        if self.failures:
            self._learn_failures(check_array(everything, dtype=np.float64), failed)
        self.num_failed_ = int(failed.sum())
        self.resolution_: Array = steps
        self._target_shape: tuple[int, ...] = targets.shape[1:]
        joined = weights_of_evidence(inputs, columns, steps[varies], None)
        has_noise = noise_std is None and self.likelihood != "noise_free"
        if joined is not None and weights is None and has_noise:
            num_copies = np.sum(joined == 0.0)
            warnings.warn(
                f"{num_copies} of {len(inputs)} rows are copies of others, inputs and targets "
                "alike; kernel and noise of single layers are chosen without them.",
                TargetWarning,
                stacklevel=3,
            )
        if not varies.all():
            warnings.warn(
                f"{np.sum(~varies)} of {len(varies)} targets are constant and predicted as such.",
                TargetWarning,
                stacklevel=3,
            )
        for index, column in zip(np.flatnonzero(varies), columns.T, strict=True):
            called = f"y[:, {index}]" if self._target_shape else str(name or "y")
            odd = odd_targets(column, called)
            if odd is not None and self.likelihood != "noise_free":
                warnings.warn(odd, TargetWarning, stacklevel=3)
        return self

    @whole_or_not
    def tell(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        num_steps: int = 200,
        noise_std: npt.ArrayLike | None = None,
    ) -> DeepWishartRegressor:
        """Take in further rows, within seconds where they are like those before.

        Where the scale of a column has doubled or halved by now, and of models whose output layer
        is no regression (noise that depends on the inputs, minibatches), or whose rows are means of
        runs or have a known noise, a new one is fitted to all rows, as by ``fit``. Else depth,
        kernels and likelihood stay, and so do the units. A single layer with Gaussian noise or
        none, or with a kernel for each output, is fitted anew, in less than a second. Other models
        start at the values that they had, and take some gradient steps; inputs of the rows become
        inducing points as well, up to the number that there may be. Up to 120 rows a deep one whose
        kernel was a name is trained from the start as well, with six times the steps, and the
        better one of both is kept, by what it predicts of each row from all others.

        :param X: Inputs, [B, D].
        :param y: Targets, [B] or [B, Q] as those of ``fit``; rows of NaN alone are failed runs.
        :param num_steps: Gradient steps.
        :param noise_std: As that of ``fit``, [B], if that was given.
        :return: The regressor.
        :raises ValueError: If it is not fitted, or the rows do not fit.
        """
        check_integers(num_steps=num_steps)
        inputs, targets = self._check_inputs(X), np.asarray(exact_numbers("y", y), np.float64)
        columns = self._varying(targets, len(inputs))
        if (noise_std is None) is not (self._noise_std is None):
            raise ValueError("noise_std must be given if, and only if, it was given to fit.")
        noise_std = self._check_noise(noise_std, len(inputs))
        succeeded = self._note_failures(inputs, columns)
        if succeeded.any():
            noise_std = None if noise_std is None else noise_std[succeeded]
            take_in(self, inputs[succeeded], columns[succeeded], num_steps, noise_std)
        return self

    def _check_noise(
        self, noise_std: Any, num_rows: int, sample_weight: npt.ArrayLike | None = None
    ) -> Array | None:
        """Known standard deviations of noise, [N], if there are any."""
        if noise_std is None:
            return None
        found = as_real_array("noise_std", noise_std)
        if found.shape != (num_rows,) or not (np.isfinite(found) & (found >= 0.0)).all():
            raise ValueError(
                f"noise_std must be {num_rows} finite numbers from 0, got {noise_std!r:.80}."
            )
        if self.likelihood not in ("auto", "gaussian") or sample_weight is not None:
            raise ValueError(
                "noise_std must not be given with sample_weight, or a likelihood but 'auto' and "
                f"'gaussian', got likelihood={self.likelihood!r}."
            )
        if self.warm_start or self.output == "pseudo_targets" or self.batch_size is not None:
            raise ValueError(
                "noise_std must not be given with warm_start, batch_size or pseudo-targets."
            )
        return found

    def predict_noise(self, X: npt.ArrayLike, coverage: float = 0.95) -> tuple[Array, Array, Array]:
        """Predict the standard deviation of the noise, and how surely it is known.

        :param X: Inputs, [N, D].
        :param coverage: Probability of the intervals.
        :return: Root mean squares, and lower and upper ends, [N] or [N, Q] each: all the same where
            the noise does not depend on the inputs, whose variance is one number.
        :raises ValueError: If the noise is not Gaussian around the function, or ``coverage`` is
            not between 0 and 1.
        """
        check_shares(coverage=coverage)
        inputs, likelihood = self._check_inputs(X), self.model_.likelihood
        scale = self.output_standardiser_.scale
        if isinstance(likelihood, HeteroskedasticGaussian):
            at = self._raw_units().to_model(inputs)
            mean, spread = likelihood.log_scales(*self._posterior().predict_f_components(at))
            tails = 0.5 + np.array([-0.5, 0.5]) * coverage
            logs = PredictiveDistribution(mean.numpy(), spread.numpy()).quantile(tails)
            mean_square = np.mean(np.exp(2.0 * (mean + spread)), axis=0)
            found = [np.sqrt(mean_square), *np.exp(logs)]
        elif type(likelihood) in (Gaussian, RowMeansGaussian):
            deviation = np.sqrt(tf.convert_to_tensor(likelihood.variance))
            found = [np.broadcast_to(deviation, (len(inputs), len(scale)))] * 3
        else:
            name = type(likelihood).__name__
            raise ValueError(f"likelihood must be 'gaussian' or 'heteroskedastic', got a {name}.")
        mean, low, high = (self._shaped(part * scale) for part in found)
        return mean, low, high

    def _failure_at(self, X: Array) -> Array:
        if self.failure_classifier_ is None:
            return np.zeros(len(X))
        return self.failure_classifier_.predict_proba(X)[:, 1]

    def _learn_failures(self, X: Array, failed: npt.NDArray[np.bool_]) -> None:
        """Fit the classifier of failures, once there are such."""
        self._all_runs = X, failed
        if failed.any():
            classifier = DeepWishartClassifier(depth=1, num_steps=500, random_state=self._seed)
            self.failure_classifier_ = classifier.fit(X, failed)

    def _note_failures(self, X: Array, y: Array) -> npt.NDArray[np.bool_]:
        """Count failures among new runs and learn from them; return which have succeeded."""
        failed = _failed_runs(y)
        self.num_failed_ += int(failed.sum())
        if self._all_runs is not None:
            inputs, before = self._all_runs
            self._learn_failures(np.concatenate([inputs, X]), np.concatenate([before, failed]))
        return ~failed

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _constants_of(columns: Array) -> Array:
    """The value of each target that is constant, [Q], and NaN of others, or if all are."""
    constants = np.where(are_constant(columns), np.fmin.reduce(columns), np.nan)
    return constants if np.isnan(constants).any() else np.full_like(constants, np.nan)


def _failed_runs(y: Any) -> npt.NDArray[np.bool_]:
    """Which rows have NaN alone, [N]; none where there are no such, or no numbers at all."""
    values = np.asarray(y)
    if values.ndim not in (1, 2) or values.dtype.kind not in "fO":
        return np.zeros(len(values) if values.ndim else 0, bool)
    if values.dtype.kind == "O":
        values = np.vectorize(lambda v: v if isinstance(v, float) else 0.0, [float])(values)
    return np.isnan(values).all(axis=tuple(range(1, values.ndim)))
