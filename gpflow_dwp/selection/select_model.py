"""From data to the model that predicts them best."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from gpflow.base import RegressionData
from gpflow.likelihoods import Gaussian, Likelihood

from gpflow_dwp.base import TrainingData
from gpflow_dwp.layers.wishart_posterior import PosteriorFamily
from gpflow_dwp.likelihoods.named import LikelihoodName
from gpflow_dwp.models import KERNELS, DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.models.assembly import InducingChoice, OutputPosterior
from gpflow_dwp.models.data_checks import check_data
from gpflow_dwp.selection._kernels import initial_kernel
from gpflow_dwp.selection._starts import Start
from gpflow_dwp.selection.candidates import (
    CANDIDATE_KERNELS,
    Auto,
    Effort,
    Selection,
)
from gpflow_dwp.selection.observations import check_equal_runs, recorded_steps
from gpflow_dwp.selection.search import Search
from gpflow_dwp.selection.trainer import Trainer, rows_of_batches
from gpflow_dwp.training import EarlyStopping
from gpflow_dwp.validation import (
    as_weighted,
    check_arrays,
    check_choice,
    check_integers,
    check_weights,
)

__all__ = ["select_model"]


def select_model(
    data: TrainingData,
    *,
    depth: int | Auto = "auto",
    kernel: str | Auto = "auto",
    likelihood: Likelihood | LikelihoodName | Auto = "auto",
    effort: Effort = "default",
    num_inducing: int | Auto = "auto",
    posterior: PosteriorFamily = "AB",
    whiten: bool = False,
    width: int | None = None,
    output: OutputPosterior | None = None,
    inducing: InducingChoice = "subset",
    num_steps: int | None = None,
    batch_size: int | None = None,
    num_samples: int = 2,
    validation_data: RegressionData | None = None,
    patience: int = 10,
    seed: int = 0,
    progress: bool = True,
) -> Selection:
    """Fit models of several kernels, likelihoods and depths, and keep the one that predicts best.

    Of a table of numbers up to 2,000 rows, single layers come first: exact Gaussian processes that
    L-BFGS fits within seconds. The kernel is the one with the highest evidence, from several
    initialisations, with a lengthscale for each input where they gain more than a nat each over a
    common one. A warp, and Student's noise, are kept if their evidence is higher and they predict
    each row from all others no worse than plain Gaussian noise does, by CRPS in the unit of the
    observations.

    Then depth gets a trial. Deep candidates start plain, without a warp and with Gaussian noise,
    from the fitted single layers: a squared exponential and a Matérn 5/2 kernel, ν the number of
    inputs, and 5 where those are less; above 120 rows in the better kernel alone. They are
    trained in three stages, and weak ones are dropped against each other, by leave-one-out density,
    or where they are far below the best single layer. The last is kept if it predicts better than
    that: by the log density of each row given all others, with CRPS not against it
    (:func:`gpflow_dwp.selection.leave_one_out`).

    Observations that repeat are taken to be recorded to a step, the smallest gap between them. All
    densities here are then probabilities of cells, by their width.

    Of more rows, and of other likelihoods, models are compared by their bounds.

    :param data: Inputs [N, D], standardised, and observations [N, P], standardised as well where
        they are numbers, NaN where they are missing; and weights [N] if rows are to count more or
        less than once. Where some are missing, single layers start from the rows that have all,
        and models with pseudo-targets are compared by their bounds.
    :param depth: GP layers of the equivalent deep GP; "auto" for 1, or more where that pays.
    :param kernel: A name in :data:`gpflow_dwp.models.KERNELS`, for all layers; "auto" for one of
        :data:`CANDIDATE_KERNELS`, with or without a lengthscale for each input, or the first of
        them for a likelihood that is given.
    :param likelihood: One that is given, or the name of one; "auto" for the one that predicts best:
        see :data:`gpflow_dwp.likelihoods.LikelihoodName`.
    :param effort: "quick" tries single layers only, "default" depth 2 as well, "thorough" takes
        more steps, and tries depth 3, too.
    :param num_inducing: Number of inducing points, M, at most; "auto" for all rows up to 1,000 and
        at most 500 above in a single layer; where gradient steps are taken, for 100, and with
        minibatches of numbers for 300 in a single layer and 200 in deeper models.
    :param posterior: Posterior family of every Wishart layer; like the next five, as for
        :func:`build_deep_wishart_process`.
    :param whiten: Whether posteriors are relative to the prior's scale.
    :param width: Degrees of freedom of every Wishart layer, ν; None for the number of inputs, or 5
        where that predicts better.
    :param output: What the output layer's posterior comes from, at all depths.
    :param inducing: Where inducing inputs start: "subset", "kmeans" or a matrix, [M, D].
    :param num_steps: Gradient steps of a model that takes such, at most, and half of them in a
        single layer, unless its noise is heteroskedastic; None for 1,000, and in deep regressions
        for 3,000, 2,500 above 500 rows, or 8,000 if ``effort`` is "thorough".
    :param batch_size: Rows of a minibatch in these steps; None for all up to 2,000 rows and for
        1,000 above; of another likelihood, for all up to 500 and for 500 above.
    :param num_samples: Number of draws in each of these steps, S.
    :param validation_data: Held-out rows, X [N, D] and Y [N, P], in the same units. Gradient
        steps end when their log density gets no better, and the best parameters are kept (see
        :class:`EarlyStopping`); it is judged 20 times in a run, once the annealing is over. L-BFGS
        takes no notice. None for all steps.
    :param patience: After how many judgements without a better density a run ends.
    :param seed: For starting values, draws and minibatches.
    :param progress: Whether to show progress bars.
    :raises ValueError: If an argument or the data cannot be used; nothing has been fitted then.
    """
    X, Y, weights = as_weighted(data)
    X, Y = check_arrays(X, Y, may_miss=True)
    may_be_regression = not np.isnan(Y).any()
    weights = None if weights is None else check_weights(weights, len(X))
    for name, number in (("depth", depth), ("num_inducing", num_inducing)):
        if not isinstance(number, str) or number != "auto":
            check_integers(**{name: number})
    if not _is_auto(kernel):
        check_choice(KERNELS, kernel=kernel)
    given = likelihood if isinstance(likelihood, Likelihood) else None
    if given is None:
        check_choice((*get_args(LikelihoodName), "auto"), likelihood=likelihood)
    if isinstance(given, Gaussian):
        raise ValueError("likelihood must be a name where the noise is Gaussian, got an object.")
    check_choice(get_args(Effort), effort=effort)
    for name, count in (("num_steps", num_steps), ("batch_size", batch_size)):
        if count is not None:
            check_integers(**{name: count})
    check_integers(num_samples=num_samples, patience=patience)
    architecture: dict[str, Any] = {
        "posterior": posterior,
        "whiten": whiten,
        "width": width,
        "inducing": inducing,
        "num_samples": num_samples,
    }
    # What cannot be used is refused here, before anything is fitted.
    smallest = build_deep_wishart_process(
        data,
        1 if depth == "auto" else depth,
        num_inducing=1 if num_inducing == "auto" else num_inducing,
        likelihood="gaussian" if likelihood == "auto" else likelihood,
        output=output,
        seed=seed,
        **architecture,
    )
    if validation_data is not None:
        _check_validation_data(validation_data, smallest)
    noise_free = likelihood == "noise_free"
    if noise_free:
        check_equal_runs(X, Y)
    trainer = Trainer(
        X,
        Y,
        weights,
        recorded_steps(Y) if given is None and not noise_free else np.zeros(Y.shape[1]),
        num_inducing,
        output if may_be_regression else "pseudo_targets",
        rows_of_batches(len(X), given) if batch_size is None else batch_size,
        progress,
        architecture,
        seed,
        validation_data=validation_data,
        patience=patience,
    )
    search = Search(trainer, effort, num_steps)
    if given is not None:
        name = CANDIDATE_KERNELS[0] if kernel == "auto" else kernel
        start = Start(name, initial_kernel(name, X.shape[1], variance=10.0), given)
        return search.by_bound(start, depth)
    kernels = CANDIDATE_KERNELS if kernel == "auto" else (kernel,)
    return search.of_numbers(kernels, str(likelihood), depth)


def _check_validation_data(data: RegressionData, model: DeepWishartProcess) -> None:
    try:
        EarlyStopping(data)
        check_data(model, *data)
    except ValueError as error:
        raise ValueError(f"validation_data cannot be used: {error}") from error


def _is_auto(choice: Any) -> bool:
    return isinstance(choice, str) and choice == "auto"
