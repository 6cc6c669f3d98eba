"""Classification behind scikit-learn's interface."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from gpflow_dwp.base import Array
from gpflow_dwp.estimator._base import DeepWishartEstimator
from gpflow_dwp.estimator._models import whole_or_not
from gpflow_dwp.likelihoods.named import likelihood_of_labels

__all__ = ["DeepWishartClassifier"]


class DeepWishartClassifier(ClassifierMixin, DeepWishartEstimator):
    """A deep Wishart process for classification, as a scikit-learn estimator.

    Two classes have a Bernoulli likelihood, more have a softmax of as many latent functions. Inputs
    are standardised on the rows that ``fit`` is given.

    >>> import numpy as np
    >>> from gpflow_dwp.estimator import DeepWishartClassifier
    >>> X = np.linspace(-1.0, 1.0, 20)[:, None]
    >>> labels = np.where(X[:, 0] > 0.0, "right", "left")
    >>> classifier = DeepWishartClassifier(depth=2, num_steps=20, random_state=0).fit(X, labels)
    >>> classifier.predict([[-0.8], [0.8]]).tolist()
    ['left', 'right']

    Parameters of the constructor are those of
    :class:`~gpflow_dwp.estimator.DeepWishartRegressor`.

    Attributes of a fitted classifier: ``classes_`` (the labels, sorted), ``model_`` (the GPflow
    model), ``history_`` (its training), ``input_standardiser_``, ``n_features_in_``, and
    ``feature_names_in_`` where the inputs had names.
    """

    @whole_or_not
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> DeepWishartClassifier:
        """Train a new model, or with ``warm_start`` the one there is.

        :param X: Inputs, [N, D]; times and categories are taken as the regressor takes them.
        :param y: Labels of any kind, [N].
        :param sample_weight: How often each row counts, [N]: 2 is for a row that comes twice. None
            for once.
        :return: The classifier.
        :raises ValueError: If the data are not finite inputs and labels of one length, there is a
            single class, an argument of the constructor cannot be used, or a model that goes on
            knows no such label, or has other columns.
        """
        inputs, y, weights = self._check_rows(self._inputs_to_fit(X), y, sample_weight)
        try:
            found = np.unique(y)
        except TypeError as error:
            raise ValueError(f"y must hold labels that can be sorted: {error}.") from error
        check_classification_targets(y)
        classes = self.classes_ if self._goes_on() else found
        unknown = np.setdiff1d(y, classes)
        if len(unknown):
            raise ValueError(
                f"y must hold labels of the first fit to go on, {classes.tolist()}, got "
                f"{unknown[0]!r}."
            )
        indices = np.searchsorted(classes, y)
        if len(classes) < 2:
            raise ValueError(f"y must hold two classes or more, got one class, {classes[0]!r}.")
        likelihood = likelihood_of_labels(len(classes))
        self._train(inputs, indices.astype(np.float64)[:, None], weights, likelihood)
        self.classes_: npt.NDArray[np.generic] = classes
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.generic]:
        """Predict the most probable label.

        :param X: Inputs, [N, D].
        :return: Labels, [N].
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Predict the probability of each class.

        For two classes it is exact for the draws that make up the mixture; for more, the softmax's
        expectation is estimated, with numbers that depend on each point alone.

        :param X: Inputs, [N, D].
        :return: Probabilities in the order of ``classes_``, [N, C].
        """
        inputs = self._check_inputs(X)
        return self._raw_units().probabilities(self._posterior(), inputs)

    def predict_log_proba(self, X: npt.ArrayLike) -> Array:
        """Predict the logarithm of each class's probability, [N, C]: see :meth:`predict_proba`."""
        return np.log(self.predict_proba(X))
