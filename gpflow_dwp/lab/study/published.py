"""The numbers that papers print for the UCI regression sets.

"improved" is Ober, Anson, Milsom and Aitchison (2023), *An improved variational approximate
posterior for the deep Wishart process*; "original" is Ober and Aitchison (2021), *A variational
approximate posterior for the deep Wishart process*, whose "DWP" is the GW posterior here; "vmg" is
Louizos and Welling (2016), *Structured and efficient variational deep learning with matrix Gaussian
posteriors*. Densities are those of Salimbeni, Dutordoir, Hensman and Deisenroth (2019), *Deep
Gaussian processes with importance-weighted variational inference*. The files beside this module
hold the numbers as printed, with two decimals.
"""

from __future__ import annotations

from importlib import resources

import pandas as pd

__all__ = [
    "LARGEST_ROUNDING",
    "PAPERS",
    "PAPERS_WITH_RUNTIMES",
    "PRINTED_NAMES",
    "published_densities",
    "published_differences",
    "published_runtimes",
    "published_scores",
]

PAPERS = ("improved", "original", "vmg")
PAPERS_WITH_RUNTIMES = ("improved", "original")
_ENDINGS = {"improved": "_dwp.csv", "original": "_dwp.csv", "vmg": ".csv"}

# Half a unit of the last printed decimal: what a printed number may be off by.
LARGEST_ROUNDING = 0.005

# How the papers write the models that a study calls by shorter names.
_NAMES = (
    *("DGP", "DIWP", "GW", "A", "AB", "VMG"),
    *("GP", "GP-GP", "LV-GP", "LV-GP-GP", "LV-GP-GP-GP", "LV-DWP"),
)
PRINTED_NAMES = {name: f"{name}-GW" if name in ("A", "AB") else name for name in _NAMES}


def published_scores() -> pd.DataFrame:
    """Means and standard errors over splits that the papers print.

    From the improved paper the ELBO per datum in nats (its Table 3), the test log-likelihood
    (Table 5) and the root mean squared error (Table 6), both in the target's raw units; from the
    original paper the ELBO (its Table 2) and the test log-likelihood (Table 3). Depths 2 to 5. From
    Louizos and Welling (Table 1) the test log-likelihood and the root mean squared error of one
    hidden layer, which is depth 2, also for three rivals that no study runs: "VI", "PBP" and
    "Dropout". Their random splits are not those of the other papers. Their "Year" is left out.

    :return: One row for each number, with columns ``paper``, ``dataset``, ``depth``, ``metric``,
        ``model``, ``mean``, ``standard_error`` and ``splits``: the splits behind it, 20 and for
        protein 5.
    """
    scores = _join({paper: f"uci_{paper}{_ENDINGS[paper]}" for paper in PAPERS})
    scores["splits"] = scores["dataset"].map(lambda dataset: 5 if dataset == "protein" else 20)
    return scores


def published_differences() -> pd.DataFrame:
    """Differences of the ELBO per datum between posteriors: the improved paper's Table 4.

    Each printed difference is that of the rounded means of Table 3, and each printed standard error
    is that table's two combined as if the models had been measured on unrelated splits. Standard
    errors of paired differences are smaller.

    :return: One row for each number, with columns ``dataset``, ``depth``, ``model``, ``baseline``,
        ``mean`` (of model minus baseline, nats) and ``standard_error``.
    """
    return _read("elbo_differences_improved_dwp.csv")


def published_runtimes() -> pd.DataFrame:
    """Mean seconds of one epoch: the improved paper's Table 2 and the original paper's Table 4.

    Boston ran on a CPU (Intel Core i9-10900X), protein on a GPU (NVIDIA GeForce 2080 Ti). Neither
    paper prints its batch size or a standard error.

    :return: One row for each number, with columns ``paper``, ``dataset``, ``depth``, ``model`` and
        ``seconds_per_epoch``.
    """
    return _join({paper: f"runtime_{paper}_dwp.csv" for paper in PAPERS_WITH_RUNTIMES})


def published_densities() -> pd.DataFrame:
    """Test log-likelihoods of conditional density estimation: Salimbeni et al. (2019), Table 1.

    In nats per row, of standardised targets, by kernel density estimates from 2,000 draws of each
    test row's target; five random splits of 90% and 10%, which are not those of other papers.

    :return: One row for each number, with columns ``dataset``, ``N``, ``D``, ``model`` (layers,
        bottom first), ``inference`` ("VI" or "IWVI", with 5 importance samples), ``mean``,
        ``standard_error`` and ``splits``. The red wine data are "wine", as elsewhere here.
    """
    table = _read("test_log_likelihood_iwvi.csv")
    return table.assign(dataset=table["dataset"].replace({"winered": "wine"}), splits=5)


def _join(names: dict[str, str]) -> pd.DataFrame:
    """One table of several papers' files."""
    tables = {paper: _read(name) for paper, name in names.items()}
    return pd.concat(tables, names=["paper", None]).reset_index("paper").reset_index(drop=True)


def _read(name: str) -> pd.DataFrame:
    """One file, with the models' short names."""
    short = {printed: model for model, printed in PRINTED_NAMES.items()}
    with (resources.files(__package__) / "published" / name).open("rb") as file:
        table = pd.read_csv(file)
    columns = [column for column in ("model", "baseline") if column in table]
    return table.assign(**table[columns].replace(short))
