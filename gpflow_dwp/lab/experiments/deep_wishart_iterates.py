"""Does a posterior over training iterates improve a deep Wishart process's predictions?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpflow_dwp.iterates import (
    SWAG,
    FactorAnalysisPosterior,
    IterateAverage,
    OnlineEM,
)
from gpflow_dwp.lab.experiments.experiment import OnSplit, mixture_scores
from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.training import Adam, fit

__all__ = ["STEPS_BETWEEN_ITERATES", "DeepWishart", "collecting"]

STEPS_BETWEEN_ITERATES = 10
_RANK = 10
_NUM_DRAWS = 30
_SAMPLES_PER_DRAW = 10


def collecting(learning_rate: float) -> dict[str, Any]:
    """How :func:`gpflow_dwp.fit` trains while iterates are collected: at a constant rate."""
    return {"optimizer": Adam(learning_rate, beta_2=0.98), "kl_annealing_steps": 0}


@dataclass(frozen=True)
class DeepWishart(OnSplit):
    """A deep Wishart process (AB-GW, depth 2) that goes on at a constant rate once it is trained.

    Every tenth iterate of the second run is collected. Each kind of prediction is a mixture of 300
    draws of the Gram matrices: 10 at each of 30 draws of the variational parameters, or 300 at one
    value of them.

    :param collecting_steps: Of the second run; the first has ``steps``, by the fast protocol.
    :param learning_rate: Of the second.
    :param num_inducing: Number of inducing points, M.
    :param seed: For starting values and draws.
    """

    collecting_steps: int = 2_000
    learning_rate: float = 1e-3
    num_inducing: int = 100
    seed: int = 0

    effort = (("steps", "num_steps"), ("collecting_steps", "num_collecting_steps"))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return test log-likelihood and RMSE in raw units for each kind of prediction."""
        data = self.load()
        model = build_deep_wishart_process(
            data.train, 2, num_inducing=self.num_inducing, output="pseudo_targets", seed=self.seed
        )
        fit(model, data.train, self.steps, seed=self.seed, progress=False)

        whole = {"num_samples": _NUM_DRAWS * _SAMPLES_PER_DRAW}
        results = {"trained": mixture_scores(model, data, **whole)}
        posteriors: dict[str, Any] = {
            "SWA": IterateAverage(model),
            "SWAG": SWAG(model, _RANK),
            "factor analysis": FactorAnalysisPosterior(model, OnlineEM(_RANK, warm_up=2 * _RANK)),
        }
        fit(
            model,
            data.train,
            self.collecting_steps,
            seed=self.seed + 1,
            callbacks=list(posteriors.values()),
            callback_interval=STEPS_BETWEEN_ITERATES,
            progress=False,
            **collecting(self.learning_rate),
        )
        results["last iterate"] = mixture_scores(model, data, **whole)
        for name, posterior in posteriors.items():
            if name == "SWA":
                posterior.use_mean()
                results[name] = mixture_scores(model, data, **whole)
            else:
                draws = {"num_draws": _NUM_DRAWS, "num_samples": _SAMPLES_PER_DRAW}
                results[name] = mixture_scores(posterior, data, **draws)
        for name, result in results.items():
            yield {
                "dataset": self.dataset,
                "split": self.split,
                "predictor": name,
                "num_steps": self.steps,
                "num_collecting_steps": self.collecting_steps,
                "learning_rate": self.learning_rate,
                "seed": self.seed,
                **result,
            }
