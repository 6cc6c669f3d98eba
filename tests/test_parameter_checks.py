from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpflow_dwp import parameter_checks as checks


def test_dtype_is_that_of_the_tensors_else_the_default_and_variables_are_kept() -> None:
    single, array = checks.convert_parameters(a=tf.ones(2), b=np.ones(2))
    assert single.dtype == array.dtype == tf.float32
    (array,) = checks.convert_parameters(a=np.ones(2, np.float32))
    assert array.dtype == tf.float64
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        assert checks.convert_parameters(a=[1, 2])[0].dtype == tf.float32
    variable, parameter = tf.Variable(np.ones(2)), gpflow.Parameter(np.ones(2))
    kept = checks.convert_parameters(a=variable, b=parameter, c=1.0)
    assert kept[0] is variable and kept[1] is parameter and kept[2].dtype == tf.float64


def test_mixed_or_integer_dtypes_raise() -> None:
    with pytest.raises(ValueError, match="a: float32, b: float64"):
        checks.convert_parameters(a=tf.ones(2), b=tf.ones(2, tf.float64))
    with pytest.raises(ValueError, match="a: int32"):
        checks.convert_parameters(a=tf.ones(2, tf.int32))


@pytest.mark.parametrize("bad", ["1", [[1.0], [1.0, 2.0]], np.ones(2) + 1j, None])
def test_what_holds_no_real_numbers_is_named(bad: object) -> None:
    """Catches an imaginary part that is dropped, and NumPy's messages, which name no argument."""
    with pytest.raises(ValueError, match="^rate must hold (real )?numbers"):
        checks.convert_parameters(loc=1.0, rate=bad)


def test_conditions() -> None:
    singular = [np.ones([2, 2]), np.zeros([2, 2]), [[np.inf, 0.0], [0.0, 1.0]]]
    for condition, good, bad in (
        (checks.positive, [1.0, 2.0], [0.0, -1.0, np.inf, np.nan]),
        (checks.invertible, [np.eye(2), 1e-30 * np.eye(2), [[1.0, 1.0], [1e-20, 0.0]]], singular),
    ):
        for values, expected in ((good, True), (bad, False)):
            for value in values:
                assert bool(np.all(condition(np.asarray(value, np.float64)))) is expected


def test_above_a_triangle_anything_goes() -> None:
    checks.check_tril("L", tf.constant([[1.0, np.nan], [0.0, 2.0]]))
    for bad in (-np.eye(2), [[1.0, 0.0], [np.inf, 1.0]]):
        with pytest.raises(ValueError, match="^L must have finite entries and a positive diagonal"):
            checks.check_tril("L", tf.constant(bad))
