"""From data to the model of them that has the highest bound."""

from __future__ import annotations

from typing import Any, get_args

from gpflow.base import RegressionData
from gpflow.likelihoods import Gaussian, Likelihood

from gpflow_dwp.base import TrainingData
from gpflow_dwp.data.table import as_weighted, check_arrays, check_weights
from gpflow_dwp.layers.wishart_posterior import PosteriorFamily
from gpflow_dwp.likelihoods import Noise
from gpflow_dwp.models import KERNELS, DeepWishartProcess, build_deep_wishart_process
from gpflow_dwp.models.assembly import InducingChoice, OutputPosterior
from gpflow_dwp.models.data_checks import check_data
from gpflow_dwp.objectives import Estimator
from gpflow_dwp.selection._kernels import initial_kernel
from gpflow_dwp.selection._search import Search, Trial, rows_of_batches
from gpflow_dwp.selection._starts import Start
from gpflow_dwp.selection.candidates import CANDIDATE_KERNELS, Auto, Selection
from gpflow_dwp.training import EarlyStopping
from gpflow_dwp.validation import check_choice, check_flags, check_instance, check_integers

__all__ = ["select_model"]

_DEEPEST = 3


def select_model(
    data: TrainingData,
    *,
    depth: int | Auto = "auto",
    kernel: str | Auto = "auto",
    warp: bool | Auto = "auto",
    noise: Noise | Auto = "auto",
    num_inducing: int | Auto = "auto",
    likelihood: Likelihood | None = None,
    posterior: PosteriorFamily = "AB",
    whiten: bool = False,
    width: int | None = None,
    output: OutputPosterior | None = None,
    inducing: InducingChoice = "subset",
    latent_dim: int = 0,
    estimator: Estimator = Estimator(),
    num_steps: int = 1_000,
    batch_size: int | None = None,
    num_samples: int = 2,
    validation_data: RegressionData | None = None,
    patience: int = 10,
    seed: int = 0,
    progress: bool = True,
) -> Selection:
    """Fit models of several depths, and keep the one with the highest bound.

    Bounds of the same data can be compared, whatever the depth, the kernels or the warp. With a
    single layer and Gaussian noise the bound is the marginal likelihood of a Gaussian process, or
    that of sparse regression, which L-BFGS maximises within seconds. So kernel and warp are chosen
    there: the kernel that has the highest, with a lengthscale for each input where they gain more
    than a nat each over a common one, a warp where it gains more than its parameters count for in
    the Bayesian information criterion, and Student's noise where it gains more than a nat. Deeper
    models start at what the one before has learned. They are given up as soon as their bound would
    not reach the best one's at its present pace. So is, in the end, a single layer whose noise is a
    function of the inputs.

    For other likelihoods only the depth is chosen. Functions start with a variance of 10, so that
    labels can be sure.

    :param data: Inputs [N, D], standardised, and observations [N, P], standardised as well where
        the noise is Gaussian; and weights [N] if rows are to count more or less than once.
    :param depth: GP layers of the equivalent deep GP; "auto" for 1, then 2 and 3 for as long as
        the bound grows.
    :param kernel: A name in :data:`gpflow_dwp.models.KERNELS`, for all layers; "auto" for one of
        :data:`CANDIDATE_KERNELS`, with or without a lengthscale for each input, or the first of
        them for a likelihood that is given.
    :param warp: Whether observations are warped, by a :class:`SinhArcsinh`; not for a likelihood
        that is given.
    :param noise: "gaussian", or "student_t" with tails that are learned
        (:class:`WarpedStudentT`), or "heteroskedastic", a function of the inputs
        (:class:`HeteroskedasticGaussian`), for which also a single layer takes gradient steps;
        "auto" for the one with the highest bound, the last of them only in a single layer, where
        that is not ruled out by ``depth``, ``warp`` or ``output``. Not for a likelihood that is
        given.
    :param num_inducing: Number of inducing points, M, at most; "auto" for all rows up to 1,000 and
        at most 500 above in a single layer; where gradient steps are taken, for 100, and with
        minibatches of numbers for 300 in a single layer and 200 in deeper models.
    :param likelihood: Of another kind than Gaussian; None for that.
    :param posterior: Posterior family of every Wishart layer; like the next five, as for
        :func:`build_deep_wishart_process`.
    :param whiten: Whether posteriors are relative to the prior's scale.
    :param width: Degrees of freedom of every Wishart layer, ν; None for D.
    :param output: What the output layer's posterior comes from, at all depths.
    :param inducing: Where inducing inputs start: "subset", "kmeans" or a matrix, [M, D].
    :param latent_dim: Number of latent variables of each row, W. Kernel and noise are chosen
        without latent variables, and a single layer with some takes gradient steps, too.
    :param estimator: Of the bound in these steps, and of what is compared: with latent variables
        an importance-weighted one, say.
    :param num_steps: Gradient steps of a model that takes such, at most, and half of them in a
        single layer, unless its noise differs by place. Where a model is looked for and a step goes
        through more than 500 rows, each is tried by three fifths of the steps, and the one that is
        kept takes the rest. A single layer with Gaussian noise takes at most 100 iterations of
        L-BFGS.
    :param batch_size: Rows of a minibatch in these steps; None for all up to 2,000 rows and for
        1,000 above; of another likelihood, for all up to 500 and for 500 above.
    :param num_samples: Number of draws in each of these steps, S.
    :param validation_data: Held-out rows, X [N, D] and Y [N, P], in the same units. Gradient
        steps end when their log density gets no better, and the best parameters are kept (see
        :class:`EarlyStopping`); it is judged 20 times in a run, once the annealing is over. Which
        model is kept is still for the bound to say, and L-BFGS takes no notice. None for all steps.
    :param patience: After how many judgements without a better density a run ends.
    :param seed: For starting values, draws and minibatches.
    :param progress: Whether to show progress bars.
    :raises ValueError: If an argument or the data cannot be used; nothing has been fitted then.
    """
    X, Y, weights = as_weighted(data)
    X, Y = check_arrays(X, Y)
    weights = None if weights is None else check_weights(weights, len(X))
    if not _is_auto(depth):
        check_integers(depth=depth)
    if not _is_auto(num_inducing):
        check_integers(num_inducing=num_inducing)
    if not _is_auto(kernel):
        check_choice(KERNELS, kernel=kernel)
    if not _is_auto(warp):
        check_flags(warp=warp)
    check_choice((*get_args(Noise), "auto"), noise=noise)
    if isinstance(likelihood, Gaussian):
        raise ValueError("likelihood must be None for Gaussian noise, got a Gaussian one.")
    check_integers(num_steps=num_steps, num_samples=num_samples)
    if batch_size is not None:
        check_integers(batch_size=batch_size)
    check_integers(patience=patience)
    architecture: dict[str, Any] = {
        "posterior": posterior,
        "whiten": whiten,
        "width": width,
        "inducing": inducing,
        "latent_dim": latent_dim,
        "num_samples": num_samples,
    }
    is_heteroskedastic = likelihood is None and noise == "heteroskedastic"
    if is_heteroskedastic and warp == "auto":
        warp = False
    # What cannot be used is refused here, before anything is fitted.
    smallest = build_deep_wishart_process(
        data,
        1 if depth == "auto" else depth,
        num_inducing=1 if num_inducing == "auto" else num_inducing,
        likelihood=likelihood,
        warp=likelihood is None and warp is True,
        noise="heteroskedastic" if is_heteroskedastic else "gaussian",
        output=output,
        seed=seed,
        **architecture,
    )
    check_instance(Estimator, estimator=estimator)
    if validation_data is not None:
        _check_validation_data(validation_data, smallest)
    search = Search(
        X,
        Y,
        weights,
        num_inducing,
        output,
        num_steps,
        rows_of_batches(len(X), likelihood) if batch_size is None else batch_size,
        progress,
        architecture,
        seed,
        estimator=estimator,
        validation_data=validation_data,
        patience=patience,
    )
    if likelihood is None:
        kernels = CANDIDATE_KERNELS if kernel == "auto" else (kernel,)
        process = search.choose_kernel(kernels, warp is True)
        by_place = search.with_noise_by_place(process)
        start = by_place if is_heteroskedastic else search.choose_noise(process, warp, noise)
    else:
        name = CANDIDATE_KERNELS[0] if kernel == "auto" else kernel
        start = Start(name, initial_kernel(name, X.shape[1], variance=10.0), likelihood)
    best = _deepen(search, start) if depth == "auto" else search.train(start, depth)
    may_differ = likelihood is None and noise == "auto" and warp is not True
    if may_differ and depth in (1, "auto") and output != "regression":
        trial = search.train(by_place, 1, best.candidate.elbo)
        best = max(best, trial, key=lambda trial: trial.candidate.elbo)
    model, history, candidate, _ = search.finish(best)
    return Selection(model, history, candidate, tuple(search.candidates))


def _deepen(search: Search, start: Start) -> Trial:
    """Train models of more and more layers, for as long as the bound grows."""
    best = search.train(start, 1)
    for depth in range(2, _DEEPEST + 1):
        trial = search.train(start, depth, best.candidate.elbo, best.model)
        if not trial.candidate.elbo > best.candidate.elbo:
            break
        best = trial
    return best


def _check_validation_data(data: RegressionData, model: DeepWishartProcess) -> None:
    try:
        EarlyStopping(data)
        check_data(model, *data)
    except ValueError as error:
        raise ValueError(f"validation_data cannot be used: {error}") from error


def _is_auto(choice: Any) -> bool:
    return isinstance(choice, str) and choice == "auto"
