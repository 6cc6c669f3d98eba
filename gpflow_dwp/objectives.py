"""Bounds on the log marginal likelihood, as functions of what a propagated batch returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
from check_shapes import check_shapes

__all__ = ["BoundTerms", "evidence_lower_bound"]


class BoundTerms(NamedTuple):
    """A bound, term by term, in nats.

    :param data: The expected log likelihood of all data, [].
    :param log_ratios: Each layer's expected log P - log Q, bottom first, [L].
    """

    data: tf.Tensor
    log_ratios: tf.Tensor

    def weighted_sum(self, kl_weight: float | tf.Tensor = 1.0) -> tf.Tensor:
        """Return the bound, or with a ``kl_weight`` below 1 its annealed version, []."""
        return self.data + tf.cast(kl_weight, self.data.dtype) * tf.reduce_sum(self.log_ratios)


@check_shapes("expected_log_likelihoods: [S, N]")
def evidence_lower_bound(
    expected_log_likelihoods: tf.Tensor,
    log_ratios: Sequence[tf.Tensor],
    *,
    num_data: int | tf.Tensor,
) -> BoundTerms:
    """The evidence lower bound, averaged over draws and estimated from a batch.

    E_S[(num_data / N) Σ_n E_q log p(y_n | f_n) + Σ_layers (log P - log Q)]

    :param expected_log_likelihoods: E log p(y_n | f_n) over the output's Gaussian, given the
        draws, [S, N].
    :param log_ratios: Each layer's log P - log Q, [S] or [1].
    :param num_data: Size of the whole data set, of which the batch is a uniform sample.
    """
    mean_per_datum = tf.reduce_mean(expected_log_likelihoods)
    return BoundTerms(
        data=tf.cast(num_data, mean_per_datum.dtype) * mean_per_datum,
        log_ratios=tf.stack([tf.reduce_mean(ratio) for ratio in log_ratios]),
    )
