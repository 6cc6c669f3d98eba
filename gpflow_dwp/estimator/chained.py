"""Emulators in a chain: linked simulators, coarse and fine ones, and fields."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gpflow.kernels import LinearCoregionalization
from gpflow.likelihoods import Gaussian
from sklearn.base import clone

from gpflow_dwp.base import Array
from gpflow_dwp.data import Standardiser
from gpflow_dwp.estimator._chained_left_out import left_out_of_field, left_out_of_finest
from gpflow_dwp.estimator._chained_posterior import ChainedPosterior, Field, Link
from gpflow_dwp.estimator._numbers import exact_numbers
from gpflow_dwp.estimator._predictions import PredictsNumbers
from gpflow_dwp.estimator.regressor import DeepWishartRegressor
from gpflow_dwp.evaluation import PredictiveDistribution, RawUnits
from gpflow_dwp.likelihoods.row_means import RowMeansGaussian
from gpflow_dwp.validation import are_constant, as_real_array, check_integers, check_matrix

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ChainedEmulator"]

# What components of a field leave of the variance of its runs.
_LEAST_LEFT = 1e-4
# Up to so many outputs have kernels of their own.
_MOST_COMPONENTS = 10
_LEAST_VARIANCE = 1e-12
# Draws of a chain, as long as its regressors stay what they are.
_kept: weakref.WeakKeyDictionary[ChainedEmulator, tuple[list[Any], ChainedPosterior]]
_kept = weakref.WeakKeyDictionary()


class ChainedEmulator(PredictsNumbers):
    """Fitted regressors in a chain: outputs of one are inputs of others, as draws, not as means.

    So the uncertainty of the first links is part of what the last one predicts (linked emulators:
    Kyzyurova, Berger and Wolpert, "Coupling computer models through linking their statistical
    emulators", 2018; Ming and Guillas, "Linked Gaussian process emulation for systems of computer
    models using Matérn kernels and adaptive design", 2021). It predicts as a regressor does, and
    all of :mod:`gpflow_dwp.emulation` takes it; so does :meth:`load` what :meth:`save` wrote.

    >>> import numpy as np
    >>> from gpflow_dwp.estimator import ChainedEmulator
    >>> from gpflow_dwp.estimator import DeepWishartRegressor
    >>> X = np.linspace(0.0, 1.0, 12)[:, None]
    >>> fit = DeepWishartRegressor(likelihood="noise_free", effort="quick", random_state=0).fit
    >>> first = fit(X, np.sin(6.0 * X[:, 0]))
    >>> fit = DeepWishartRegressor(likelihood="noise_free", effort="quick", random_state=0).fit
    >>> second = fit(2.0 * X - 1.0, 4.0 * X[:, 0] ** 2)
    >>> mean, std = ChainedEmulator([first, second]).predict(X, return_std=True)
    >>> mean.shape, std.shape
    ((12,), (12,))

    :param links: Fitted regressors, the last of which predicts what the chain does.
    :param columns: What each link takes, as indices of the chain's D inputs, from 0, and on from D
        of the outputs of the links before, in their order; in the order that it was fitted to.
        None, also for a single link, for what fits: all inputs, the outputs of the link before, or
        both.
    :param num_inputs: D; None for as many as the first link takes.
    :param include_noise: Whether outputs are passed on with their noise or nugget, as a stochastic
        simulator's, or are functions.
    :param num_samples: Draws, S.
    :param random_state: Their seed.
    :raises ValueError: If a link is not fitted, or it is not known what it takes.
    """

    def __init__(
        self,
        links: Sequence[DeepWishartRegressor],
        columns: Sequence[Sequence[int] | None] | None = None,
        *,
        num_inputs: int | None = None,
        include_noise: bool = True,
        num_samples: int = 128,
        random_state: int = 0,
    ) -> None:
        check_integers(num_samples=num_samples)
        for each in links:
            if not isinstance(each, DeepWishartRegressor) or not hasattr(each, "model_"):
                raise ValueError(f"links must be fitted DeepWishartRegressors, got {each!r:.80}.")
            if each.columns_ is not None and each.columns_.levels:
                levels = list(each.columns_.levels)
                raise ValueError(f"links must take numbers alone, got one of categories: {levels}.")
        given = [None] * len(links) if columns is None else columns
        if not links or len(given) != len(links):
            raise ValueError(f"columns must be of {len(links)} links, at least one.")
        self.n_features_in_ = links[0].n_features_in_ if num_inputs is None else num_inputs
        self.include_noise, self.num_samples, self._seed = include_noise, num_samples, random_state
        self.links: tuple[DeepWishartRegressor, ...] = ()
        self._columns: tuple[tuple[int, ...], ...] = ()
        self._added: tuple[tuple[int, ...], ...] = ()
        self._stages: tuple[int, ...] = ()
        self._is_coarse_to_fine = False
        # Units, patterns, variance that these leave, constants, and all runs.
        self._field: tuple[Standardiser, Array, Array, Array, Array] | None = None
        for index, (each, own) in enumerate(zip(links, given, strict=True)):
            self._append(each, own, index)

    @classmethod
    def coarse_to_fine(
        cls,
        runs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
        regressor: DeepWishartRegressor | None = None,
        **arguments: Any,
    ) -> Self:
        """Emulate the finest of several versions of a simulator, with the help of coarser ones.

        An emulator of each version takes the inputs and what the one before predicts there, so that
        designs need not be nested (Perdikaris et al., "Nonlinear information fusion algorithms for
        data-efficient multi-fidelity modelling", 2017). Two of them share the draws, of which one
        has learned the output and one its difference from the coarser output: from few fine runs
        either by itself is too sure. Under a warp, or where outputs are not the same, there is the
        first alone. With N fine runs of p inputs, what is passed on included, variances are N / (N
        - p - 2) times those of the emulators, as for Student's distribution of a linear model.

        :param runs: Inputs [N, D] and outputs [N] or [N, Q] of each version, the coarsest first.
        :param regressor: What is fitted to each, of which copies are taken; None for one of runs
            without noise.
        :param arguments: Of the constructor: ``num_samples`` and ``random_state``.
        :raises ValueError: If there are not two versions or more.
        """
        if len(runs) < 2:
            raise ValueError(f"runs must be of two versions or more, got {len(runs)}.")
        regressor = regressor or DeepWishartRegressor(likelihood="noise_free", random_state=0)
        first = clone(regressor).fit(*runs[0])
        chain = cls([first], include_noise=False, **arguments)
        chain._is_coarse_to_fine = True
        for stage, (X, y) in enumerate(runs[1:], start=1):
            chain._fit_stage(stage, chain._check_inputs(X), as_real_array("y", y), regressor)
        return chain

    @classmethod
    def of_field(
        cls,
        X: npt.ArrayLike,
        Y: npt.ArrayLike,
        regressor: DeepWishartRegressor | None = None,
        *,
        num_components: int | None = None,
        **arguments: Any,
    ) -> Self:
        """Emulate many outputs, such as a series or a map, by their principal components.

        Outputs are standardised. The variance that components leave of each is part of what is
        predicted (Higdon et al., "Computer model calibration using high-dimensional output", 2008).

        :param X: Inputs, [N, D].
        :param Y: Outputs, [N, Q].
        :param regressor: What is fitted to the components' coefficients; None for one of runs
            without noise.
        :param num_components: K; None for as many as leave 1e-4 of the variance, at most
            ten, each of which may have a kernel of its own.
        :param arguments: Of the constructor: ``num_samples`` and ``random_state``.
        :raises ValueError: If Y is no finite matrix, or K not below N and Q.
        """
        rows = check_matrix("Y", Y)
        constants = np.where(are_constant(rows), rows[0], np.nan)
        rows = rows[:, np.isnan(constants)]
        units = Standardiser.fit(rows)
        Z = units.transform(rows)
        left, singular, basis = np.linalg.svd(Z, full_matrices=False)
        if num_components is None:
            shares = 1.0 - np.cumsum(singular**2) / np.sum(singular**2)
            num_components = int(np.argmax(shares <= _LEAST_LEFT)) + 1
            num_components = max(1, min(num_components, _MOST_COMPONENTS, len(Z) - 2))
        check_integers(num_components=num_components)
        freedom = len(Z) - 1 - num_components
        if freedom < 1 or num_components > len(basis):
            raise ValueError(
                f"num_components must be below {len(Z) - 1} runs and at most {len(basis)}, got "
                f"{num_components}."
            )
        basis = basis[:num_components]
        coefficients = (left * singular)[:, :num_components]
        variance = np.sum(np.square(Z - coefficients @ basis), axis=0) / freedom
        regressor = regressor or DeepWishartRegressor(likelihood="noise_free", random_state=0)
        chain = cls([clone(regressor).fit(X, coefficients)], **arguments)
        chain._field = units, basis, np.maximum(variance, _LEAST_VARIANCE), constants, rows
        return chain

    def tell(self, X: npt.ArrayLike, y: npt.ArrayLike, stage: int = -1) -> Self:
        """Take in further runs, as a regressor's ``tell`` does.

        :param X: Inputs of the chain, [B, D].
        :param y: Outputs of a link, or of a version of the simulator, of which finer ones are then
            fitted anew; of a field, whose components stay, all of it.
        :param stage: Of which, from 0; the last one by default.
        """
        stages = range(self._stages[-1] + 1)
        if stage not in (-1, *stages):
            raise ValueError(f"stage must be -1 or one of {list(stages)}, got {stage!r}.")
        stage = stages[stage]
        inputs, outputs = self._check_inputs(X), np.asarray(exact_numbers("y", y), np.float64)
        field = self._field
        if self._field is not None:
            units, basis, _, _, rows = self._field
            new = self._varying(outputs, len(inputs))
            outputs = units.transform(new) @ basis.T
            rows = np.concatenate([rows, new[np.isfinite(outputs).all(axis=1)]])
            field = *self._field[:4], rows
        known = self._known(inputs, stage)
        for link in self._links_of(stage):
            link.regressor.tell(_inputs(known, link), _less(outputs, known, link))
        self._field = field
        for later in stages[stage + 1 :] if self._is_coarse_to_fine else ():
            regressor = self._links_of(later)[0].regressor
            rows, targets, _ = regressor._rows
            if regressor._held_out is not None:  # it holds out rows of its own again
                both = zip((rows, targets), regressor._held_out, strict=True)
                rows, targets = (np.concatenate(parts) for parts in both)
            outputs = regressor._shaped(targets, regressor._constants)
            self._fit_stage(later, rows[:, : inputs.shape[1]], outputs)
        return self

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """Names of the inputs, [D], where all have one."""
        if self._columns[0] != tuple(range(self.n_features_in_)):
            raise AttributeError("feature_names_in_: some inputs have no names.")
        names: npt.NDArray[np.object_] = self.links[0].feature_names_in_
        return names

    def _failure_at(self, X: Array) -> Array:
        """That any link fails; those before are at their means."""
        success = np.ones(len(X))
        for stage in range(self._stages[-1] + 1):
            link, known = self._links_of(stage)[0], self._known(X, stage)
            success *= 1.0 - link.regressor._failure_at(known[:, link.columns])
        return 1.0 - success

    @property
    def output_standardiser_(self) -> Standardiser:  # type: ignore[override]
        """Units of the outputs, those that are constant left out."""
        return self._output.output_standardiser_ if self._field is None else self._field[0]

    @property
    def resolution_(self) -> Array:  # type: ignore[override]
        """To which step each output was recorded, [Q]: 0 for none, as of fields."""
        return self._output.resolution_ if self._field is None else np.zeros(len(self._constants))

    @property
    def _constants(self) -> Array:  # type: ignore[override]
        return self._output._constants if self._field is None else self._field[3]

    @property
    def _target_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._output._target_shape if self._field is None else self._constants.shape

    @property
    def _output(self) -> DeepWishartRegressor:
        return self._links_of(self._stages[-1])[0].regressor

    def _check_inputs(self, X: npt.ArrayLike) -> Array:
        inputs = check_matrix("X", X)
        if inputs.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} columns, got {inputs.shape[1]}.")
        if hasattr(X, "columns") and hasattr(self.links[0], "feature_names_in_"):
            names = [X.columns[column] for column in self._columns[0]]
            expected = list(self.links[0].feature_names_in_)
            if names != expected:
                raise ValueError(f"X must have columns {expected} for the first link, got {names}.")
        return inputs

    def _raw_units(self, *, of_outputs: bool = True) -> RawUnits:
        outputs = self.output_standardiser_ if of_outputs else None
        return RawUnits(self._posterior(), None, outputs)

    def _posterior(self) -> ChainedPosterior:
        parts = [each._posterior() for each in self.links]  # others once a link has changed
        kept = _kept.get(self)
        if kept is None or any(one is not other for one, other in zip(kept[0], parts, strict=True)):
            kept = _kept[self] = parts, self._draws(self.num_samples, self._seed)
            kept[1].is_kept = True
        return kept[1]

    def _draws(
        self, num_samples: int, seed: int, last: list[Link] | None = None
    ) -> ChainedPosterior:
        """Others than of predictions, or with other links at the end."""
        *earlier, own = (self._links_of(stage) for stage in range(self._stages[-1] + 1))
        return ChainedPosterior(
            [*earlier, own if last is None else last],
            self.n_features_in_,
            noise=self.include_noise,
            num_samples=max(num_samples, 2),  # links of one stage need one each
            seed=seed,
            field=None if self._field is None else Field(*self._field[1:3]),
        )

    def _left_out(self, num_samples: int) -> tuple[PredictiveDistribution, Array] | None:
        """Runs from all others, and these, of a chain that has runs; None of linked emulators."""
        if self._field is not None:
            return left_out_of_field(self, num_samples)
        return left_out_of_finest(self, num_samples) if self._is_coarse_to_fine else None

    def _links_of(self, stage: int) -> list[Link]:
        are_fine = [self._is_coarse_to_fine and each > 0 for each in self._stages]
        links = map(Link, self.links, self._columns, self._added, are_fine)
        return [each for each, own in zip(links, self._stages, strict=True) if own == stage]

    def _known(self, X: Array, stage: int) -> Array:
        """Inputs and mean outputs of all stages before one."""
        known = X
        for each in range(stage):
            values = [
                np.reshape(link.regressor.predict(_inputs(known, link)), (len(X), -1))
                + (known[:, link.added] if link.added else 0.0)
                for link in self._links_of(each)
            ]
            known = np.hstack([known, np.mean(values, axis=0)])
        return known

    def _append(
        self,
        link: DeepWishartRegressor,
        columns: Sequence[int] | None,
        stage: int,
        added: tuple[int, ...] = (),
    ) -> None:
        for each in self.links if stage else ():
            if isinstance(each.model_.output_layer.kernel, LinearCoregionalization):
                raise ValueError(
                    "links must have outputs that are independent given the layers below where "
                    "others take them, got one with a LinearCoregionalization."
                )
        inputs = self.n_features_in_
        widths = [len(self._links_of(each)[0].regressor._constants) for each in range(stage)]
        total, before = inputs + sum(widths), widths[-1] if widths else 0
        if columns is None:
            last = list(range(total - before, total))
            fitting = {before: last, inputs + before: [*range(inputs), *last]}
            columns = fitting.get(link.n_features_in_, ()) if stage else range(inputs)
        if len(columns) != link.n_features_in_ or not {*columns} <= {*range(total)}:
            raise ValueError(
                f"columns must say what link {stage + 1} takes, {link.n_features_in_} indices "
                f"below {total}, got {list(columns)}."
            )
        self.links += (link,)
        self._columns += (tuple(int(each) for each in columns),)
        self._stages += (stage,)
        self._added += (added,)

    def _fit_stage(
        self, stage: int, X: Array, y: Array, regressor: DeepWishartRegressor | None = None
    ) -> None:
        """Fit emulators of a version to what is predicted of the one before."""
        known = self._known(X, stage)
        if regressor is None:
            for link in self._links_of(stage):
                link.regressor.fit(known[:, link.columns], _less(y, known, link))
            return
        width = len(self._links_of(stage - 1)[0].regressor._constants)
        last = tuple(range(known.shape[1] - width, known.shape[1]))
        columns = *range(X.shape[1]), *last
        self._append(clone(regressor).fit(known[:, columns], y), columns, stage)
        if y.reshape(len(y), -1).shape[1] == width:
            link = Link(clone(regressor), columns, last)
            link.regressor.fit(known[:, columns], _less(y, known, link))
            both, normal = (self.links[-1], link.regressor), (Gaussian, RowMeansGaussian)
            is_normal = all(type(each.model_.likelihood) in normal for each in both)
            if is_normal and not any(np.isfinite(each._constants).any() for each in both):
                self._append(link.regressor, columns, stage, last)


def _inputs(known: Array, link: Link) -> Any:
    """What a link takes, with the names that it was fitted with, or it would warn of them."""
    names = getattr(link.regressor, "feature_names_in_", None)
    rows = known[:, link.columns]
    if names is None or "pandas" not in sys.modules:
        return rows
    return sys.modules["pandas"].DataFrame(rows, columns=names)


def _less(y: Array, known: Array, link: Link) -> Array:
    """Outputs, or what they differ by from those that a link is relative to."""
    return y - known[:, link.added].reshape(y.shape) if link.added else y
