"""``gpflow-dwp compare``: the estimators' defaults beside what users have already."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from cyclopts import Group, Parameter

from gpflow_dwp.cli.errors import user_mistakes
from gpflow_dwp.cli.parameters import LIST, Settings, Splits, assignments
from gpflow_dwp.lab.commands.cells import CellOptions, run_cells, tell_end
from gpflow_dwp.optional import import_optional

__all__ = ["CompareOptions", "compare"]

_CELLS = Parameter(group=Group("Cells: every combination that there is, is run", sort_key=1))
_OWN = Parameter(group=Group("The deep Wishart process, dwp", sort_key=2))
_Uci = Literal["yacht", "boston", "energy", "concrete", "kin8nm", "power", "protein"]
_Others = Literal["diabetes", "housing", "diamond", "clothing", "slid", "star98", "cpus", "quakes"]
_Classification = Literal["breast_cancer", "wine", "digits"]
_Table = Literal[_Uci, _Others, "birthwt", _Classification]
_Rival = Literal["exact-gp", "bayesian-ridge", "logistic", "hist-gb", "random-forest", "ngboost"]
_Model = Literal[_Rival, "svc", "svgp", "dwp"]
_ALL = Parameter(show_default=lambda _: "all")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CompareOptions(CellOptions):
    """What is compared.

    :param tables: Of regression, but for the last three, which are of classification.
    :param models: Each for the tables of its tasks.
    :param splits: Numbers of splits, such as 0-4 or 0 3 7: 0-4 are for claims, 5-9 for choosing
        defaults.
    :param settings: Arguments of the estimator in place of its defaults, such as depth=2
        num_steps=1000.
    :param label: What the report calls it (default: dwp, and the settings).
    """

    tables: Annotated[tuple[_Table, ...], LIST, _ALL, _CELLS] = get_args(_Table)
    models: Annotated[tuple[_Model, ...], LIST, _ALL, _CELLS] = get_args(_Model)
    splits: Annotated[Splits, _CELLS] = (0, 1, 2, 3, 4)
    settings: Annotated[Settings, _OWN] = ()
    label: Annotated[str | None, _OWN] = None


def compare(options: CompareOptions) -> int:
    """Compare estimators with rivals, all by their defaults, on real tables.

    Answers whether a table is better served by a deep Wishart process with its defaults or by what
    is there already: Gaussian processes, boosted trees, forests, NGBoost and linear models. Every
    cell, a model of one split, runs in a process of its own with one thread, and is kept as soon as
    it is done; the same command goes on. The report tells of all models that --out has on these
    tables and splits: densities, CRPS, errors, calibration, processor time.

    examples:

        gpflow-dwp compare --out comparison
        gpflow-dwp compare --tables yacht diabetes --models exact-gp hist-gb dwp --out comparison
        gpflow-dwp compare --models dwp --set depth=2 --label shallow --splits 5-9 --out comparison
    """
    from gpflow_dwp.lab.comparison.cell import make_comparison
    from gpflow_dwp.lab.comparison.models import COMPARED_MODELS
    from gpflow_dwp.lab.comparison.report import write_comparison
    from gpflow_dwp.lab.comparison.tables import check_tables
    from gpflow_dwp.lab.study.results import read_results

    with user_mistakes():
        import_optional("matplotlib", "cli")  # the end would be late to know
        cells = make_comparison(
            options.tables,
            options.models,
            options.splits,
            label=options.label,
            settings=assignments(options.settings),
        )
        for model in {cell.model for cell in cells}:
            COMPARED_MODELS[model].load()
        tables = list(dict.fromkeys(cell.table for cell in cells))
        check_tables(tables, options.splits, uci_folder=options.uci_folder)
        if missing := [table for table in options.tables if table not in tables]:
            print(
                f"gpflow-dwp compare: left out, for want of such a split or model: "
                f"{', '.join(missing)}",
                file=sys.stderr,
            )
        records = run_cells("compare", options, cells)
    finished = sum(record.status == "finished" for record in records)
    if finished:
        text = write_comparison(read_results(options.out), options.out, options.splits, tables)
        if not options.json:
            print(text)
    counts = {"finished": finished, "failed": len(records) - finished}
    return tell_end("compare", options, records, counts)
