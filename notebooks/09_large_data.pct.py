# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A hundred thousand rows
#
# A step of training costs what its minibatch costs, whatever the number of rows. The data here are
# Friedman's function of ten inputs, the last five of which do nothing (*Multivariate adaptive
# regression splines*, 1991), with noise of standard deviation 1: how well one can do is known.

# %% tags=["hide-input"]
# %matplotlib inline
import os
import time

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
from sklearn.datasets import make_friedman1

from gpflow_dwp import build_deep_wishart_process, fit
from gpflow_dwp.data import Standardiser
from gpflow_dwp.evaluation import mean_log_density, plot_learning_curve, plot_relevance, rmse

FAST = "GPFLOW_DWP_FAST" in os.environ  # set by the tests: shortened, not meaningful
NUM_STEPS = 6 if FAST else 3_000
NUM_ROWS = 600 if FAST else 100_000
NUM_INDUCING = 20 if FAST else 100
BATCH_SIZE = 50 if FAST else 500

features, outcome = make_friedman1(NUM_ROWS + NUM_ROWS // 10, noise=1.0, random_state=0)
train, test = slice(0, NUM_ROWS), slice(NUM_ROWS, None)
inputs, target = Standardiser.fit(features[train]), Standardiser.fit(outcome[train, None])
X, Y = inputs.transform(features), target.transform(outcome[:, None])

# %% [markdown]
# ## A step costs the same
#
# Processor time of a step with the same minibatch size, for more and more rows, once it is
# compiled.


# %%
def build(num_rows):
    """A deep Wishart process for the first rows."""
    return build_deep_wishart_process(
        (X[:num_rows], Y[:num_rows]),
        depth=2,
        num_inducing=NUM_INDUCING,
        output="pseudo_targets",
    )


def seconds_per_step(num_rows, num_steps):
    """Processor time of training steps, without the first, which compiles."""
    seen = []
    fit(
        build(num_rows),
        (X[:num_rows], Y[:num_rows]),
        1 + num_steps,
        batch_size=BATCH_SIZE,
        callbacks=[lambda progress: seen.append(time.process_time())],
        callback_interval=1,
        progress=False,
    )
    return np.median(np.diff(seen))


times = {
    num_rows: 1e3 * seconds_per_step(num_rows, 3 if FAST else 100)
    for num_rows in (NUM_ROWS // 100, NUM_ROWS // 10, NUM_ROWS)
}
pd.DataFrame({"ms per step": times}).rename_axis("rows").round(1)

# %% [markdown]
# ## More rows, better predictions
#
# The same number of steps on a hundredth, a tenth and all of the rows. `batch_size` is all you
# need to set; `num_data`, which scales a minibatch's likelihood to all rows, was set by the
# builder.

# %%
models, histories = {}, {}
for num_rows in times:
    models[num_rows] = build(num_rows)
    histories[num_rows] = fit(
        models[num_rows],
        (X[:num_rows], Y[:num_rows]),
        NUM_STEPS,
        batch_size=BATCH_SIZE,
        progress=False,
    )
model, history = models[NUM_ROWS], histories[NUM_ROWS]

# %% [markdown]
# Draws are made once; predictions are made in batches of rows, whose memory does not grow with
# their number. Scores are in raw units, in which the noise has standard deviation 1.

# %%
rows = {}
for num_rows, trained in models.items():
    posterior = trained.posterior(5 if FAST else 50, seed=0)
    means, variances = (part.numpy()[..., 0] for part in posterior.predict_y_components(X[test]))
    truth = Y[test, 0]
    scale = float(target.scale[0])
    rows[num_rows] = {
        "RMSE": scale * rmse(truth, means.mean(axis=0)),
        "log-likelihood": mean_log_density(truth, means, variances) + target.log_density_offset,
    }
rows["no model can do better than"] = {
    "RMSE": 1.0,
    "log-likelihood": -0.5 * np.log(2.0 * np.pi) - 0.5,
}
pd.DataFrame(rows).T.rename_axis("training rows").round(3)

# %% [markdown]
# A thousand rows come within a few hundredths of the noise, a hundred thousand within a few
# thousandths.

# %%
steps = np.arange(1, history.num_steps + 1)
axes = plot_learning_curve(steps, history.elbo_per_datum, label="ELBO per datum (nats)")
axes.set_title("100,000 rows, minibatches of 500")
axes.figure

# %% [markdown]
# The first kernel has a lengthscale for each input: the longer, the less the input matters. The
# five that do nothing are found out.

# %%
axes = plot_relevance(model, feature_names=[f"x{index}" for index in range(1, 11)])
axes.figure

# %% [markdown]
# ## Rows that do not fit into memory
#
# `fit` also takes a `tf.data.Dataset` of batches, from files, say. The model is built on a sample
# of the rows and told how many there are. Here the dataset makes its rows as it goes, so that no
# row is ever seen twice.


# %%
def fresh_batches():
    """Batches of rows that did not exist before."""
    for seed in range(1, 1 + NUM_STEPS):
        features, outcome = make_friedman1(BATCH_SIZE, noise=1.0, random_state=seed)
        yield inputs.transform(features), target.transform(outcome[:, None])


kinds = (
    tf.TensorSpec([None, 10], gpflow.default_float()),
    tf.TensorSpec([None, 1], gpflow.default_float()),
)
stream = tf.data.Dataset.from_generator(fresh_batches, output_signature=kinds)
streamed = build(NUM_ROWS // 100)
streamed.num_data = BATCH_SIZE * NUM_STEPS
fit(streamed, stream.prefetch(2), NUM_STEPS, progress=False)
posterior = streamed.posterior(5 if FAST else 50, seed=0)
mean, _ = posterior.predict_y(X[test])
print(f"RMSE {scale * rmse(truth, mean.numpy()[:, 0]):.3f} after {streamed.num_data:,} rows")
