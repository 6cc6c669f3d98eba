"""What ``--help`` says of each command, with examples that work as they stand."""

from __future__ import annotations

__all__ = ["COMMANDS", "EXIT_CODES"]

EXIT_CODES = """\
exit codes:
  0    done
  1    training failed, or a cell of a study or comparison; memory or disk is full; or a mistake of
       ours
  2    something that was given cannot be used; one line says what
  130  ended by Ctrl-C; 128 + N: by signal N
"""

_FIT = """\
Train a deep Wishart process, or one of its rivals, on a table and judge it on rows that were held
out, next to linear regression, gradient boosting and GPflow's sparse Gaussian process. Without a
table it takes the resistance of 308 sailing yachts.

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

_PREDICT = """\
Add predictions to a table: mean and 95% interval of each row, or the probability of each class.

example:
  gpflow-dwp predict runs/houses-1 new-houses.csv -o predictions.csv
"""

_EVALUATE = """\
Score the model of a run on a table with known targets: mean log predictive density, root mean
squared error or share of wrong labels, and how honest the uncertainty is.

example:
  gpflow-dwp evaluate runs/houses-1 sold-later.csv --json
"""

_EXPORT = """\
Write the model of a run as a TensorFlow SavedModel, which runs where only TensorFlow is installed.
It takes and gives the units of the table; its signatures are predict_y, predict_f, sample and
log_density, and assets.extra/columns.json names the columns.

example:
  gpflow-dwp export runs/houses-1 -o houses-model
"""

_INFO = """\
Say what a run directory or a saved model is: columns, scores, layers, versions. Without one, print
the versions that are installed.

examples:
  gpflow-dwp info runs/houses-1
  gpflow-dwp info --json
"""

_STUDY = """\
Train deep Gaussian and deep Wishart processes on UCI regression sets by the papers' protocol, each
in a process of its own, and keep the scores of every one as soon as it is done. The same command
resumes a study that was ended; training goes on where it stopped.

examples:
  gpflow-dwp study --datasets yacht --splits 0 --steps 2000 --out studies/short
  gpflow-dwp study --datasets yacht boston --depths 2 5 --splits 0-4 --jobs 2 --out studies/full
  gpflow-dwp study --protocol cde --datasets power --models GP LV-GP-GP --out studies/density
  gpflow-dwp study --config studies/full/config.yaml --seed 1 --out studies/seed-1
"""

_STUDY_REPORT = """\
Print the papers' tables from the results of a study, each number beside the one in print, and write
them as text, CSV and figures.

example:
  gpflow-dwp study-report studies/full
"""

_COMPARE = """\
Answer whether a table is better served by a deep Wishart process with its defaults or by what is
there already: Gaussian processes, boosted trees, forests, NGBoost and linear models, each with its
own defaults, on real tables. Every cell, a model of one split, runs in a process of its own, and is
kept as soon as it is done; the same command goes on. The report tells of all models that DIR has on
these tables and splits: densities, CRPS, errors, calibration, processor time.

examples:
  gpflow-dwp compare --out comparison
  gpflow-dwp compare --tables yacht diabetes --models exact-gp hist-gb dwp --out comparison
  gpflow-dwp compare --models dwp --set depth=2 --label shallow --splits 5-9 --out comparison
"""

_BENCHMARK = """\
Measure on this machine, in turns, each subject in a process of its own; print medians, half of the
distance of the quartiles, and what is aimed at.

  step    training steps of all models, and the dense linear algebra of a step alone by LAPACK and
          BLAS, and deep GPs of other libraries: ratios, and milliseconds
  predict compiled predictions, and their linear algebra alone
  scale   how the time of a step grows with rows, draws, depth and inducing points: exponents
  memory  peak memory of a step, over the arrays that its reverse pass must keep
  variance  noise of gradients, by the estimator of the bound
  import  what the import of the package adds to that of GPflow

examples:
  gpflow-dwp benchmark step --shapes yacht-5 --models AB GW --json step.json
  gpflow-dwp benchmark step --shapes protein-5 --models AB --dtypes float64 float32
  gpflow-dwp benchmark step --models AB --peers gpflux gpytorch --peer-python peers/bin/python
  gpflow-dwp benchmark predict --shapes yacht-2 --models AB DGP
  gpflow-dwp benchmark scale --figure scale.png
  gpflow-dwp benchmark memory --shapes yacht-5 protein-5
  gpflow-dwp benchmark variance --dataset yacht --depth 2 --out gradient_variance.csv
  gpflow-dwp benchmark import
"""

_ITERATES = """\
Rerun experiments with posteriors over training iterates, write every result with its provenance,
and print means and standard errors:

  factor-analysis    online and batch factor analysis of vectors drawn from factor models
  linear-posterior   iterates of linear regression beside its exact posterior
  linear-prediction  test errors of averages and ensembles of those iterates
  deep-wishart       test scores of averages and ensembles of a deep Wishart process's iterates

examples:
  gpflow-dwp iterates linear-posterior --out linear-posterior.csv
  gpflow-dwp iterates factor-analysis --dimensions 100 --out factor-analysis.csv
"""

_MNIST = """\
Train a matrix-Gaussian network on MNIST by the protocol of Louizos and Welling (2016): the last
10,000 training images are held out, to choose settings by; inputs are the 784 pixels, in no order.
Prints the errors of validation and test images. An epoch of 150 150 150 takes about a minute on a
CPU core.

examples:
  gpflow-dwp mnist --hidden 150 150 150
  gpflow-dwp mnist --hidden 400 400 --num-pseudo-data 100 --folder data/mnist --out runs/mnist-400
"""

_COMPLETION = """\
Print a script that completes commands, options and files of gpflow-dwp in a shell.

examples:
  eval "$(gpflow-dwp completion bash)"                            # in ~/.bashrc
  gpflow-dwp completion zsh > "${fpath[1]}/_gpflow-dwp"
  gpflow-dwp completion fish > ~/.config/fish/completions/gpflow-dwp.fish
"""

COMMANDS = {
    "fit": ("train on a table, compare with simpler models, write a run directory", _FIT),
    "predict": ("add predictions to a table, with the model of a run directory", _PREDICT),
    "evaluate": ("score the model of a run directory on a table with known targets", _EVALUATE),
    "export": ("write the model of a run directory for TensorFlow alone", _EXPORT),
    "info": ("say what a run directory or saved model is, and which versions are installed", _INFO),
    "study": ("rerun cells of the papers' comparison on UCI data sets", _STUDY),
    "study-report": (
        "put a study's results beside those that the papers print",
        _STUDY_REPORT,
    ),
    "compare": ("compare estimators with rivals, all by their defaults, on real tables", _COMPARE),
    "benchmark": ("measure how fast training is on this machine", _BENCHMARK),
    "iterates": ("rerun experiments with posteriors over training iterates", _ITERATES),
    "mnist": ("classify handwritten digits with a matrix-Gaussian network", _MNIST),
    "completion": ("print a script that completes commands and options in a shell", _COMPLETION),
}
"""Of each command, a line for the list of commands, and what its own help begins with."""
