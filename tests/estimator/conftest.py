"""What tests of estimators share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp.models.mixture_posterior import MixturePosterior


def _comparison(variables: Sequence[tf.Variable]) -> Callable[[], bool]:
    values = [tf.convert_to_tensor(each) for each in variables]
    return lambda: all(map(np.array_equal, variables, values))


@pytest.fixture(scope="module")
def untraced() -> Iterator[None]:
    """Trace no predictions: that takes as long as to compute them three times."""
    with pytest.MonkeyPatch.context() as patch:
        never = property(lambda _: False, lambda *_: None)
        patch.setattr(MixturePosterior, "is_kept", never)
        patch.setattr("gpflow_dwp.models.kept_posterior._comparison", _comparison)
        yield


@pytest.fixture(scope="module")
def eagerly() -> Iterator[None]:
    """Compile nothing, in fixtures of the module neither."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
