"""Deep Wishart processes as scikit-learn estimators, for a table and no wish to build a model."""

from gpflow_dwp.optional import import_optional

import_optional("sklearn", "sklearn")  # the classes below inherit from its classes

from gpflow_dwp.estimator.chained import ChainedEmulator  # noqa: E402
from gpflow_dwp.estimator.classifier import DeepWishartClassifier  # noqa: E402
from gpflow_dwp.estimator.regressor import DeepWishartRegressor  # noqa: E402

__all__ = ["ChainedEmulator", "DeepWishartClassifier", "DeepWishartRegressor"]
