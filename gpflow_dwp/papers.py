"""The papers that models rest on, and what to cite for one."""

from __future__ import annotations

import tensorflow as tf

from gpflow_dwp.validation import check_instance

__all__ = [
    "DEEP_KERNEL_PROCESSES",
    "DEEP_WISHART_PROCESS",
    "GLOBAL_INDUCING_POINTS",
    "GPFLOW",
    "IMPROVED_POSTERIOR",
    "LATENT_VARIABLES",
    "bibtex",
    "citation",
]


def bibtex(kind: str, key: str, **fields: object) -> str:
    """Return a BibTeX entry, for the ``papers`` of a layer or likelihood.

    :param kind: Such as "article".
    :param key: By which it is cited.
    :param fields: By their names.
    """
    lines = (f"  {name} = {{{value}}}," for name, value in fields.items())
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


DEEP_WISHART_PROCESS = bibtex(
    "inproceedings",
    "ober2021variational",
    title="A variational approximate posterior for the deep {W}ishart process",
    author="Ober, Sebastian W. and Aitchison, Laurence",
    booktitle="Advances in Neural Information Processing Systems 34",
    year=2021,
    doi="10.48550/arXiv.2107.10125",
)
"""Ober and Aitchison (2021): the deep Wishart process and GW."""
IMPROVED_POSTERIOR = bibtex(
    "inproceedings",
    "ober2023improved",
    title="An improved variational approximate posterior for the deep {W}ishart process",
    author="Ober, Sebastian W. and Anson, Ben and Milsom, Edward and Aitchison, Laurence",
    booktitle="Uncertainty in Artificial Intelligence",
    year=2023,
    doi="10.48550/arXiv.2305.14454",
)
"""Ober, Anson, Milsom and Aitchison (2023): A-GW and AB-GW."""
DEEP_KERNEL_PROCESSES = bibtex(
    "inproceedings",
    "aitchison2021deep",
    title="Deep kernel processes",
    author="Aitchison, Laurence and Yang, Adam X. and Ober, Sebastian W.",
    booktitle="International Conference on Machine Learning",
    year=2021,
    doi="10.48550/arXiv.2010.01590",
)
"""Aitchison, Yang and Ober (2021): kernels of Gram matrices, the deep inverse Wishart process."""
GLOBAL_INDUCING_POINTS = bibtex(
    "inproceedings",
    "ober2021global",
    title="Global inducing point variational posteriors for {B}ayesian neural networks and deep "
    "{G}aussian processes",
    author="Ober, Sebastian W. and Aitchison, Laurence",
    booktitle="International Conference on Machine Learning",
    year=2021,
    doi="10.48550/arXiv.2005.08140",
)
"""Ober and Aitchison (2021): inducing points that all layers share."""
LATENT_VARIABLES = bibtex(
    "inproceedings",
    "salimbeni2019deep",
    title="Deep {G}aussian processes with importance-weighted variational inference",
    author="Salimbeni, Hugh and Dutordoir, Vincent and Hensman, James and Deisenroth, Marc Peter",
    booktitle="International Conference on Machine Learning",
    year=2019,
    doi="10.48550/arXiv.1905.05435",
)
"""Salimbeni, Dutordoir, Hensman and Deisenroth (2019): latent variables of each row."""
GPFLOW = bibtex(
    "article",
    "GPflow2017",
    title="{GP}flow: A {G}aussian process library using {T}ensor{F}low",
    author="Matthews, Alexander G. de G. and van der Wilk, Mark and Nickson, Tom and Fujii, "
    "Keisuke and Boukouvalas, Alexis and Le{\\'o}n-Villagr{\\'a}, Pablo and Ghahramani, Zoubin and "
    "Hensman, James",
    journal="Journal of Machine Learning Research",
    volume=18,
    number=40,
    pages="1--6",
    year=2017,
)
"""Matthews et al. (2017): GPflow."""


def citation(model: tf.Module) -> str:
    """Return BibTeX entries of the papers that a model rests on.

    Its parts say which: a layer or likelihood of yours adds to them by an attribute ``papers``, a
    tuple of BibTeX entries.

    >>> import numpy as np
    >>> from gpflow_dwp import build_deep_wishart_process, citation
    >>> X = np.linspace(-1.0, 1.0, 5)[:, None]
    >>> model = build_deep_wishart_process((X, X), depth=2, posterior="GW")
    >>> [line for line in citation(model).splitlines() if line.startswith("@inp")]
    ['@inproceedings{ober2021variational,', '@inproceedings{ober2021global,']

    :param model: Any GPflow model, or a posterior over its iterates.
    :return: One entry after the other, each once.
    :raises ValueError: If ``model`` is no module of TensorFlow's, as these are.
    """
    check_instance(tf.Module, model=model)
    parts = (model, *model.submodules)
    found = [paper for part in parts for paper in getattr(part, "papers", ())]
    return "\n\n".join(dict.fromkeys([*found, GPFLOW]))
