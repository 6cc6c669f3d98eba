"""How much longer it takes to import this package than GPflow alone."""

from __future__ import annotations

from gpflow_dwp.lab.benchmarks._peers import prepare_import
from gpflow_dwp.lab.benchmarks.measurement import Figure, Measured, Report, Subject, start, summary

__all__ = ["benchmark_import"]


def benchmark_import(*, turns: int = 7, report: Report) -> dict[str, Measured]:
    """Tell what the import of the package adds to that of GPflow.

    Each import has a fresh interpreter, whose own start is left out.
    """
    theirs, ours = (
        Subject(name, prepare_import, (["gpflow", name],)) for name in ("gpflow", "gpflow_dwp")
    )
    answers = []
    for turn in range(turns):
        pair = []
        for subject in (theirs, ours):
            with start(subject) as process:
                pair.append(process.ask())
        answers.append(pair)
        report(f"turn {turn + 1} of {turns}")
    figures: list[Figure] = []
    for clock, unit in (("wall", "s"), ("processor", "s of processor")):
        seconds = [(theirs[clock], ours[clock]) for theirs, ours in answers]
        over = [ours - theirs for theirs, ours in seconds]
        figures += [
            summary(f"import gpflow, {unit}", [pair[0] for pair in seconds]),
            summary(f"import gpflow_dwp, {unit}", [pair[1] for pair in seconds]),
            summary(f"gpflow_dwp over gpflow, {unit}", over, 0.3),
        ]
    return {"import": Measured(figures, {})}
