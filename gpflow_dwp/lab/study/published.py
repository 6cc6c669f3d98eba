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
from typing import TYPE_CHECKING

from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
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

# Half a unit of the last printed decimal: what a printed number may be off by.
LARGEST_ROUNDING = 0.005

# How the papers write the models that a study calls by shorter names.
PRINTED_NAMES = {
    "DGP": "DGP",
    "DIWP": "DIWP",
    "GW": "GW",
    "A": "A-GW",
    "AB": "AB-GW",
    "VMG": "VMG",
    "GP": "GP",
    "GP-GP": "GP-GP",
    "LV-GP": "LV-GP",
    "LV-GP-GP": "LV-GP-GP",
    "LV-GP-GP-GP": "LV-GP-GP-GP",
    "LV-DWP": "LV-DWP",
}

_SPLITS = 20
_SPLITS_OF_DENSITIES = 5
_SPLITS_OF_PROTEIN = 5


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
    :raises ImportError: If pandas is not installed.
    """
    tables = {
        "improved": _read("uci_improved_dwp.csv"),
        "original": _read("uci_original_dwp.csv"),
        "vmg": _read("uci_vmg.csv"),
    }
    scores = _join(tables)
    protein = scores["dataset"] == "protein"
    scores["splits"] = protein.map({True: _SPLITS_OF_PROTEIN, False: _SPLITS})
    return scores


def published_differences() -> pd.DataFrame:
    """Differences of the ELBO per datum between posteriors: the improved paper's Table 4.

    Each printed difference is that of the rounded means of Table 3, and each printed standard error
    is that table's two combined as if the models had been measured on unrelated splits. Standard
    errors of paired differences are smaller.

    :return: One row for each number, with columns ``dataset``, ``depth``, ``model``, ``baseline``,
        ``mean`` (of model minus baseline, nats) and ``standard_error``.
    :raises ImportError: If pandas is not installed.
    """
    return _read("elbo_differences_improved_dwp.csv")


def published_runtimes() -> pd.DataFrame:
    """Mean seconds of one epoch: the improved paper's Table 2 and the original paper's Table 4.

    Boston ran on a CPU (Intel Core i9-10900X), protein on a GPU (NVIDIA GeForce 2080 Ti). Neither
    paper prints its batch size or a standard error.

    :return: One row for each number, with columns ``paper``, ``dataset``, ``depth``, ``model`` and
        ``seconds_per_epoch``.
    :raises ImportError: If pandas is not installed.
    """
    return _join({paper: _read(f"runtime_{paper}_dwp.csv") for paper in PAPERS_WITH_RUNTIMES})


def published_densities() -> pd.DataFrame:
    """Test log-likelihoods of conditional density estimation: Salimbeni et al. (2019), Table 1.

    In nats per row, of standardised targets, by kernel density estimates from 2,000 draws of each
    test row's target; five random splits of 90% and 10%, which are not those of other papers.

    :return: One row for each number, with columns ``dataset``, ``N``, ``D``, ``model`` (layers,
        bottom first), ``inference`` ("VI" or "IWVI", with 5 importance samples), ``mean``,
        ``standard_error`` and ``splits``. The red wine data are "wine", as elsewhere here.
    :raises ImportError: If pandas is not installed.
    """
    table = _read_file("test_log_likelihood_iwvi.csv")
    table["dataset"] = table["dataset"].replace({"winered": "wine"})
    table["splits"] = _SPLITS_OF_DENSITIES
    return table


def _join(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One table of several papers'."""
    joined = import_optional("pandas", "cli").concat(tables, names=["paper", None])
    return joined.reset_index("paper").reset_index(drop=True)


def _read(name: str) -> pd.DataFrame:
    """One file, with the models' short names."""
    table = _read_file(name)
    short = {printed: model for model, printed in PRINTED_NAMES.items()}
    for column in {"model", "baseline"} & set(table.columns):
        table[column] = table[column].replace(short)
    return table


def _read_file(name: str) -> pd.DataFrame:
    path = resources.files("gpflow_dwp.lab.study") / "published" / name
    with path.open("rb") as file:
        return import_optional("pandas", "cli").read_csv(file)
