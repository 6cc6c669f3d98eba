"""How the bound changes with depth, in models that grow layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpflow_dwp.lab.experiments.experiment import OnSplit, mixture_scores
from gpflow_dwp.lab.study.cell import Cell
from gpflow_dwp.lab.study.scoring import whole_data_bound
from gpflow_dwp.models import load_model, model_summary, save_model
from gpflow_dwp.models.deepening import start_at
from gpflow_dwp.training import fit

__all__ = ["GrowingDepth"]

_SAMPLES = 100


@dataclass(frozen=True)
class GrowingDepth(OnSplit):
    """Models of growing depth, each of which starts at the one before, and the divergence of each
    of their layers.

    They have regression outputs and are trained by the fast protocol on two draws, with annealing
    over the first sixth of the steps, as one layer is new.

    :param model: The deep GP or a deep kernel process, in :data:`STUDY_MODELS`.
    :param deepest: Layers of the last one.
    :param directory: Where trained models are kept, from which a run that was stopped goes on.
    :param num_inducing: Number of inducing points, M.
    """

    model: str
    deepest: int
    directory: Path
    num_inducing: int = 100

    key = ("dataset", "model", "split")
    effort = (("steps", "num_steps"), ("deepest", "deepest"))
    groups = ("dataset", "model", "depth")
    values = ("elbo", "divergence_of_added", "test_log_likelihood", "rmse")

    def check(self) -> None:
        super().check()
        self.cell(self.deepest)

    def cell(self, depth: int) -> Cell:
        """What says how a model is built.

        :raises ValueError: If there is none such.
        """
        return Cell(
            *(self.dataset, depth, self.model, self.split, self.steps),
            num_inducing=self.num_inducing,
            num_samples=2,
            protocol="fast",
            options=(("output", "regression"),),
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return bound, divergences and test scores in raw units for each depth.

        :raises KeyboardInterrupt: If Ctrl-C ended training; models before that are kept.
        """
        data = self.load()
        model = None
        for depth in range(1, self.deepest + 1):
            cell = self.cell(depth)
            kept = self.directory / cell.key
            if kept.exists():
                model = load_model(kept)
            else:
                shallower, model = model, cell.build(data.train)
                if shallower is not None:
                    start_at(model, shallower)
                history = fit(
                    model,
                    data.train,
                    self.steps,
                    batch_size=len(data.train[0]),
                    kl_annealing_steps=self.steps // 6 if depth > 1 else 0,
                    progress=False,
                )
                if history.num_steps < self.steps:
                    raise KeyboardInterrupt(history.stop_reason)
                save_model(model, kept)
            elbo, standard_error = whole_data_bound(model, data.train, seed=0)
            parts = [part.kl for part in model_summary(model).parts if part.kl is not None]
            yield {
                "dataset": self.dataset,
                "model": self.model,
                "split": self.split,
                "depth": depth,
                "num_steps": self.steps,
                "deepest": self.deepest,
                "elbo": elbo,
                "elbo_standard_error": standard_error,
                "divergence_of_added": parts[-2] if depth > 1 else 0.0,
                "divergences": "; ".join(f"{nats:.2f}" for nats in parts),
                **mixture_scores(model, data, num_samples=_SAMPLES),
            }
