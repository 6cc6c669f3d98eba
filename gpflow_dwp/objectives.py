"""Bounds on the log marginal likelihood, as functions of what a propagated batch returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes

__all__ = ["BoundTerms", "evidence_lower_bound", "importance_weighted_bound"]


class BoundTerms(NamedTuple):
    """A bound, term by term, in nats.

    :param data: The expected log likelihood of all data, [], with the log ratios of variables that
        belong to single data points: an importance-weighted bound cannot separate the two.
    :param log_ratios: Each layer's expected log P - log Q, bottom first, [L]: of what is global.
        One more where the likelihood has variables of its own.
    """

    data: tf.Tensor
    log_ratios: tf.Tensor

    def weighted_sum(self, kl_weight: float | tf.Tensor = 1.0) -> tf.Tensor:
        """Return the bound, or with a ``kl_weight`` below 1 its annealed version, []."""
        return self.data + tf.cast(kl_weight, self.data.dtype) * tf.reduce_sum(self.log_ratios)


@check_shapes("expected_log_likelihoods: [S, N]", "weights: [N]")
def evidence_lower_bound(
    expected_log_likelihoods: tf.Tensor,
    log_ratios: Sequence[tf.Tensor],
    *,
    num_data: int | tf.Tensor,
    weights: tf.Tensor | None = None,
) -> BoundTerms:
    """The evidence lower bound, averaged over draws and estimated from a batch.

    E_S[(num_data / N) Σ_n r_n E_q log p(y_n | f_n) + Σ_layers (log P - log Q)]

    :param expected_log_likelihoods: E log p(y_n | f_n) over the output's Gaussian, given the
        draws, [S, N].
    :param log_ratios: Each layer's log P - log Q, [S] or [1].
    :param num_data: Size of the whole data set, of which the batch is a uniform sample.
    :param weights: r_n, how often each datum counts, [N]; None for once.
    """
    if weights is not None:
        expected_log_likelihoods *= weights
    mean_per_datum = tf.reduce_mean(expected_log_likelihoods)
    return BoundTerms(
        data=tf.cast(num_data, mean_per_datum.dtype) * mean_per_datum,
        log_ratios=tf.stack(
            [tf.cast(tf.reduce_mean(ratio), mean_per_datum.dtype) for ratio in log_ratios]
        ),
    )


@check_shapes(
    "expected_log_likelihoods: [broadcast S, N, broadcast K]",
    "local_log_ratios: [broadcast S, broadcast N, broadcast K]",
    "weights: [N]",
)
def importance_weighted_bound(
    expected_log_likelihoods: tf.Tensor,
    local_log_ratios: tf.Tensor,
    log_ratios: Sequence[tf.Tensor],
    *,
    num_data: int | tf.Tensor,
    weights: tf.Tensor | None = None,
) -> BoundTerms:
    """The partially collapsed importance-weighted bound, estimated from a batch.

    E_S[(num_data / N) Σ_n r_n log (1/K) Σ_k exp(E_q log p(y_n | f_nk) + log p(w_nk) - log q(w_nk))
    + Σ_layers (log P - log Q)]

    (Salimbeni, Dutordoir, Hensman and Deisenroth, "Deep Gaussian processes with
    importance-weighted variational inference", 2019, equation 11): the final Gaussian layer is
    integrated out inside; what is global, and shared by the K copies of a datum, stays outside.
    With K = 1 it is the evidence lower bound, and local log ratios may be expectations.

    Of log p(y_n | f_nk) at draws of f, where a datum's K copies see one function, it is the same
    paper's bound (6), with the data term (7): as tight or tighter, and noisier.

    :param expected_log_likelihoods: E log p(y_n | f_nk) over the output's Gaussian, given draw s
        and copy k, [S, N, K].
    :param local_log_ratios: log p - log q of each copy's own variables, [S, N, K].
    :param log_ratios: Each layer's global log P - log Q, [S] or [1].

    The size of the data and the weights are as for :func:`evidence_lower_bound`.
    """
    log_weights = expected_log_likelihoods + local_log_ratios
    num_copies = tf.cast(tf.shape(log_weights)[-1], log_weights.dtype)
    log_means = tf.reduce_logsumexp(log_weights, axis=-1) - tf.math.log(num_copies)
    return evidence_lower_bound(log_means, log_ratios, num_data=num_data, weights=weights)
