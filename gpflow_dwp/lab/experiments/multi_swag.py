"""MultiSWAG of deep Wishart processes, whose members are trained as the cells of a study are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from gpflow_dwp.data import UCI_DATASETS, UCISplit, load_uci
from gpflow_dwp.iterates import SWAG, MultiSWAG
from gpflow_dwp.lab.experiments.deep_wishart_iterates import (
    STEPS_BETWEEN_ITERATES,
    collecting,
)
from gpflow_dwp.lab.experiments.experiment import OnSplit, mixture_scores
from gpflow_dwp.lab.study.execution import Report, Watch
from gpflow_dwp.lab.study.results import CELL_PLACE
from gpflow_dwp.lab.study.runnable import RunnableCell, check_split
from gpflow_dwp.lab.study.runner import run_cells
from gpflow_dwp.models import build_deep_wishart_process
from gpflow_dwp.training import fit
from gpflow_dwp.validation import check_choice, check_integers

__all__ = ["Member", "MultiSWAGOfWishart", "train_member", "train_members"]

_RANK = 10
_DRAWS_PER_MEMBER = 10
_SAMPLES_PER_DRAW = 10


@dataclass(frozen=True)
class Member(RunnableCell):
    """A deep Wishart process whose last iterates SWAG collects.

    :param dataset: Name of a UCI data set.
    :param depth: Of the process.
    :param model: Its family of approximate posteriors, "GW", "A" or "AB".
    :param split: Number of the split.
    :param seed: For starting values, minibatches and draws.
    :param steps: Before iterates are collected, by the fast protocol.
    :param collecting_steps: At a constant rate, every tenth of which is collected.
    :param learning_rate: Of the latter.
    :param num_inducing: Number of inducing points, M.
    """

    dataset: str
    depth: int
    model: str
    split: int
    seed: int
    steps: int
    collecting_steps: int = 2_000
    learning_rate: float = 1e-3
    num_inducing: int = 100

    runs: ClassVar[str] = f"{__name__}:train_member"
    place: ClassVar[tuple[str, ...]] = (*CELL_PLACE, "collecting_steps")

    def __post_init__(self) -> None:
        check_choice(UCI_DATASETS, dataset=self.dataset)
        check_split(self.split, UCI_DATASETS[self.dataset].num_splits, self.dataset)
        check_integers(at_least=0, seed=self.seed)
        check_integers(steps=self.steps)
        least = _RANK * STEPS_BETWEEN_ITERATES
        check_integers(at_least=least, collecting_steps=self.collecting_steps)

    @property
    def title(self) -> str:
        """Data set, split and seed in a few words."""
        return f"{self.dataset}, split {self.split}, member {self.seed}"

    @property
    def num_steps(self) -> int:
        """Of both runs."""
        return self.steps + self.collecting_steps

    def files(self, directory: Path) -> dict[str, Path]:
        return {"iterates": directory / "iterates" / self.key}

    def swag(self, data: UCISplit) -> SWAG:
        """Return what collects iterates, or what those collected before can be read into."""
        model = build_deep_wishart_process(
            data.train,
            self.depth,
            posterior=self.model,  # type: ignore[arg-type]
            num_inducing=self.num_inducing,
            output="pseudo_targets",
            seed=self.seed,
        )
        return SWAG(model, _RANK)


def train_member(
    member: Mapping[str, Any],
    *,
    iterates: str | Path,
    checkpoint_directory: str | Path,
    uci_folder: str | Path | None = None,
    report: Report | None = None,
) -> dict[str, float]:
    """Train a member, collect its iterates, and write them.

    :param member: What to run, as :meth:`Member.to_dict` gives it.
    :param iterates: The directory that they are written to.
    :param checkpoint_directory: See :func:`~gpflow_dwp.lab.study.execution.run_cell`.
    :param uci_folder: See :func:`gpflow_dwp.data.load_uci`.
    :param report: See :func:`~gpflow_dwp.lab.study.execution.run_cell`.
    :return: ``num_collected`` and ``training_seconds``.
    :raises KeyboardInterrupt: If Ctrl-C ended training; its state is kept then.
    """
    what = Member.from_dict(member)
    data = load_uci(what.dataset, what.split, folder=uci_folder)
    swag = what.swag(data)
    phases: list[tuple[str, int, int, dict[str, Any]]] = [
        ("trained", what.steps, what.seed, {}),
        ("collected", what.collecting_steps, what.seed + 1, collecting(what.learning_rate)),
    ]
    seconds, done = 0.0, 0
    for name, steps, seed, settings in phases:
        history = fit(
            swag.model,
            data.train,
            steps,
            seed=seed,
            callbacks=[Watch(report, done), *([swag] if settings else [])],
            callback_interval=STEPS_BETWEEN_ITERATES,
            progress=False,
            checkpoint_directory=Path(checkpoint_directory) / name,
            **settings,
        )
        if history.num_steps < steps:
            raise KeyboardInterrupt(history.stop_reason)
        seconds, done = seconds + history.seconds, done + steps
    swag.save(iterates)
    return {"num_collected": swag.num_collected, "training_seconds": seconds}


@dataclass(frozen=True)
class MultiSWAGOfWishart(OnSplit):
    """An equal mixture of SWAG posteriors from several starts beside the first of them alone.

    Each is a deep Wishart process (A-GW, depth 2); every prediction is a mixture of 10 draws of the
    Gram matrices at each of 10 draws of every member's variational parameters.

    :param members: How many starts there are.
    :param directory: Where :func:`train_members` has left the members.
    :param options: Further settings of the members.
    """

    members: int
    directory: Path
    options: Mapping[str, Any] = field(default_factory=dict)

    effort = (("steps", "num_steps"), ("members", "num_members"))

    def check(self) -> None:
        self.cells()
        super().check()

    def cells(self) -> list[Member]:
        """Return the members, whose seeds are 0, 1, ..."""
        place = (self.dataset, 2, "A", self.split)
        return [Member(*place, seed, self.steps, **self.options) for seed in range(self.members)]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return test log-likelihood and RMSE in raw units of one member and of all.

        :raises SavedModelError: If a member is not there.
        """
        data = self.load()
        members = []
        for cell in self.cells():
            members.append(cell.swag(data))
            members[-1].load(cell.files(self.directory)["iterates"])
        mixtures = {"SWAG": members[0], "MultiSWAG": MultiSWAG(members)}
        for name, mixture in mixtures.items():
            draws = _DRAWS_PER_MEMBER * (1 if name == "SWAG" else self.members)
            yield {
                "dataset": self.dataset,
                "split": self.split,
                "predictor": name,
                "num_steps": self.steps,
                "num_members": self.members,
                **mixture_scores(mixture, data, num_draws=draws, num_samples=_SAMPLES_PER_DRAW),
            }


def train_members(experiments: Sequence[MultiSWAGOfWishart], **arguments: Any) -> None:
    """Train the members of experiments that share a directory.

    :param experiments: One at least.
    :param arguments: How, as :func:`~gpflow_dwp.lab.study.runner.run_cells` takes it.
    :raises RuntimeError: If one fails.
    """
    first = experiments[0]
    cells = [cell for experiment in experiments for cell in experiment.cells()]
    records = run_cells(cells, first.directory, uci_folder=first.uci_folder, **arguments)
    if failed := [record for record in records if record.status == "failed"]:
        raise RuntimeError(f"{len(failed)} members failed, the first by {failed[0].error}")
