"""From data to the model that predicts them best."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from gpflow.base import RegressionData
from gpflow.likelihoods import Likelihood
from threadpoolctl import threadpool_limits

from gpflow_dwp.base import TrainingData
from gpflow_dwp.models import DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.models.data_checks import check_data
from gpflow_dwp.selection import policy
from gpflow_dwp.selection.candidates import Selection
from gpflow_dwp.selection.choice import Choice, ChoiceFields
from gpflow_dwp.selection.many_rows import choose_from_many
from gpflow_dwp.selection.observations import check_equal_runs, recorded_steps
from gpflow_dwp.selection.search import Search
from gpflow_dwp.selection.trainer import Trainer, rows_of_batches
from gpflow_dwp.training import EarlyStopping
from gpflow_dwp.validation import as_weighted, check_arrays, check_weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["select_model"]


def select_model(
    data: TrainingData,
    *,
    validation_data: RegressionData | None = None,
    seed: int = 0,
    progress: bool = True,
    **fields: Unpack[ChoiceFields],
) -> Selection:
    """Fit models of several kernels, likelihoods and depths, and keep the one that predicts best.

    Of a table of numbers up to 1,000 rows, single layers come first: exact Gaussian processes that
    L-BFGS fits within seconds. The kernel is the one with the highest evidence, from several
    initialisations, with a lengthscale for each input where they gain more than a nat each over a
    common one; where inputs have a category's indicators, four or more, one of points that stand
    for levels is among them (:class:`gpflow_dwp.kernels.LevelsMatern52`). A sum of a line,
    functions of single inputs and one of all is kept where its evidence, with a prior of
    lengthscales, is higher, and leave-one-out scores do not object; of up to 120 rows, which such
    scores flatter, where its evidence is not lower by two nats. Where the evidence of noise alone
    is higher, the kernel is a constant. A warp is kept, and Student's noise, if each row is
    predicted from all others no worse than with plain Gaussian noise, by CRPS in the unit of the
    observations. Two to ten outputs each get a kernel and noise of their own, if the evidence is
    higher by Schwarz's criterion, and scores are better.

    Then depth gets a trial, unless a single layer leaves next to nothing, and is kept if it
    predicts each row better from all others, once draws are weighted as if they had not seen it: by
    log density and CRPS, by one of them clearly. Of up to 120 rows it has to beat every single
    layer that was tried. In the end a single layer gets draws of its kernel
    (:class:`gpflow_dwp.layers.RegressionGPLayer`) of up to 500 rows, and without noise its
    deviations are scaled (:func:`gpflow_dwp.selection.calibration.scale_deviations`). A deep model
    without noise, of more than 120 rows, predicts from nearest rows as well
    (:func:`gpflow_dwp.selection.conditioning.condition`). Numbers that decide are in
    :mod:`gpflow_dwp.selection.policy`.

    Observations that repeat are taken to be recorded to a step, the smallest gap between them. All
    densities here are then probabilities of cells, by their width.

    Of more rows than 1,000, so many are chosen from at random in this way. What comes of it then
    predicts each row from all, by inducing points and by what nearest rows add to them, and is
    compared anew. Single layers are fitted by the densities of 1,000 rows given their nearest.

    Where some of two to ten outputs are missing, or rows are more than 1,000, each has a kernel and
    noise of its own, fitted to the rows in which it was observed.

    Of other likelihoods, of more rows of more than ten outputs or of deep models with tails that
    are asked for, and where the output layer or minibatches are given, models are compared by their
    bounds. For labels, counts and the like a sum is tried as well, where these, as numbers, speak
    for one (:func:`gpflow_dwp.selection.labels.sum_of_numbers`).

    :param data: Inputs [N, D], standardised, and observations [N, P], standardised as well where
        they are numbers, NaN where they are missing; and weights [N] if rows are to count more or
        less than once.
    :param validation_data: Held-out rows, X [N, D] and Y [N, P], in the same units. Gradient
        steps end when their log density gets no better, and the best parameters are kept (see
        :class:`EarlyStopping`); it is judged 20 times in a run, once the annealing is over. L-BFGS
        takes no notice. None for all steps.
    :param seed: For starting values, draws and minibatches.
    :param progress: Whether to show progress bars.
    :param fields: Those of a :class:`Choice`: ``depth``, ``kernel``, ``likelihood``, ``effort`` and
        more.
    :raises ValueError: If an argument or the data cannot be used; nothing has been fitted then.
    """
    choice = Choice(**fields)
    X, Y, weights = as_weighted(data)
    X, Y = check_arrays(X, Y, may_miss=True)
    weights = None if weights is None else check_weights(weights, len(X))
    likelihood = choice.likelihood
    # What cannot be used is refused here, before anything is fitted.
    smallest = build_deep_wishart_process(
        data,
        1 if choice.depth == "auto" else choice.depth,
        num_inducing=1 if choice.num_inducing == "auto" else choice.num_inducing,
        likelihood="gaussian" if likelihood == "auto" else likelihood,
        output=choice.output,
        seed=seed,
        **choice.of_models,
    )
    if validation_data is not None:
        _check_validation_data(validation_data, smallest)
    if likelihood == "noise_free":
        check_equal_runs(X, Y)
    given = likelihood if isinstance(likelihood, Likelihood) else None
    has_steps = given is None and likelihood != "noise_free" and choice.row_means is None
    steps = recorded_steps(Y) if has_steps else np.zeros(Y.shape[1])
    trainer = Trainer(X, Y, weights, steps, choice, seed, progress, validation_data)
    are_many = (
        len(X) > policy.EXACT_ROWS
        and choice.batch_size is None
        and choice.output is None
        and given is None
        and choice.row_means is None
        and likelihood != "heteroskedastic"
        and (choice.depth == 1 or likelihood not in ("student_t", "warped_student_t"))
        and (trainer.may_have_own_kernels if Y.shape[1] > 1 else not trainer.has_missing)
    )
    if choice.batch_size is None:
        trainer.choice = replace(choice, batch_size=rows_of_batches(len(X), given))
    search = Search(trainer)
    # Beside busy processes several threads of OpenBLAS would spin until each has had its turn.
    with threadpool_limits(limits=1, user_api="blas"):
        if given is not None:
            return search.of_others(given)
        return choose_from_many(trainer) if are_many else search.of_numbers()


def _check_validation_data(data: RegressionData, model: DeepWishartProcess) -> None:
    try:
        EarlyStopping(data)
        check_data(model, *data)
    except ValueError as error:
        raise ValueError(f"validation_data cannot be used: {error}") from error
