"""``gpflow-dwp fit``: what can be refused is refused before TensorFlow is imported."""

from __future__ import annotations

import contextlib

from gpflow_dwp.cli.backend import load_tensorflow
from gpflow_dwp.cli.configuration import write_configuration
from gpflow_dwp.cli.errors import going_on, user_mistakes
from gpflow_dwp.cli.fit_options import FitOptions
from gpflow_dwp.cli.run_directory import CONFIGURATION, Run, new_run, resume_run
from gpflow_dwp.exceptions import NonFiniteBoundError
from gpflow_dwp.optional import find_optional

__all__ = ["fit"]

_DEFAULTS = FitOptions()


def fit(options: FitOptions = _DEFAULTS) -> int:
    """Train on a table, compare with simpler models, write a run directory.

    A deep Wishart process, or one of its rivals, is judged on rows that were held out, next to
    linear regression, gradient boosting and GPflow's sparse Gaussian process. Without a table it
    takes the resistance of 308 sailing yachts.

    examples:

        gpflow-dwp fit
        gpflow-dwp fit houses.csv --target price
        gpflow-dwp fit irises.csv --target species --task classification --depth 2
        gpflow-dwp fit houses.parquet --target price --categorical town style --impute median
        gpflow-dwp fit houses.csv --target price --validation-fraction 0.2 --log log.csv
        gpflow-dwp fit houses.csv --target price --model VMG --hidden-units 50 --depth 2
        gpflow-dwp fit --resume runs/houses-1
        gpflow-dwp fit --config runs/houses-1/config.yaml --seed 1
    """
    from gpflow_dwp.cli.fit_data import read_fit_data
    from gpflow_dwp.cli.model_choice import complete

    with contextlib.ExitStack() as holding:
        with user_mistakes():
            chosen = complete(options)
            for package in ("matplotlib", "sklearn"):  # which are needed once training has ended
                find_optional(package, "cli")
            data = read_fit_data(chosen)
            run = _begin(chosen, holding)
        try:
            load_tensorflow(f"{data.summary}; TensorFlow is loading")
            from gpflow_dwp.cli.fit_run import run_fit

            run_fit(run, data, chosen)
        except BaseException as error:
            begun_here = options.resume is None and not run.has_steps
            if isinstance(error, NonFiniteBoundError) or begun_here:
                run.discard()
                raise
            with going_on(f"gpflow-dwp fit --resume {run.directory} goes on"):
                raise
    return 0


def _begin(options: FitOptions, holding: contextlib.ExitStack) -> Run:
    """The run that is begun, or goes on, and is held."""
    if options.resume is not None:
        return holding.enter_context(resume_run(options.resume))
    name = "yacht" if options.table is None else options.table.stem
    run = holding.enter_context(new_run(options.out, name, overwrite=options.overwrite))
    write_configuration(run.work / CONFIGURATION, "fit", options)
    if options.log is not None:
        options.log.unlink(missing_ok=True)  # which may be replaced
    return run
