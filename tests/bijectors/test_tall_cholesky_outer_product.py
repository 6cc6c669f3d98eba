from __future__ import annotations

import numpy as np
import pytest
import reference
import tensorflow as tf

from gpflow_dwp.bijectors import TallCholeskyOuterProduct


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_log_determinants_match_finite_differences(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    x = reference.random_trapezoid(rng, 2, size, rank)

    reference.assert_log_determinants(
        TallCholeskyOuterProduct(rank),
        rank,
        *(x, x @ np.swapaxes(x, -1, -2)),
        *(reference.trapezoid, reference.complete),
        forward_tolerance=1e-7,
        inverse_tolerance=1e-6,
    )


@pytest.mark.parametrize(("size", "df"), reference.SIZES)
def test_forward_is_the_outer_product_and_inverse_undoes_it(size: int, df: int) -> None:
    rng, rank = np.random.default_rng(10 * size + df), min(df, size)
    x = reference.random_trapezoid(rng, 2, size, rank)
    bijector = TallCholeskyOuterProduct(rank)
    # As an array: TFP would find the forward pass of a tensor in its cache.
    y = bijector.forward(x).numpy()
    np.testing.assert_allclose(y, x @ np.swapaxes(x, -1, -2), atol=1e-14)
    np.testing.assert_array_equal(y, np.swapaxes(y, -1, -2))
    recovered = bijector.inverse(y)
    np.testing.assert_allclose(recovered, x, atol=1e-11)
    np.testing.assert_allclose(recovered[0], reference.rank_cholesky(y[0], rank), atol=1e-11)


def test_rank_may_be_left_out_of_the_forward_direction() -> None:
    x = reference.random_trapezoid(np.random.default_rng(1), 4, 2)
    free, fixed = TallCholeskyOuterProduct(), TallCholeskyOuterProduct(2)
    np.testing.assert_array_equal(free.forward(x), fixed.forward(x))
    np.testing.assert_array_equal(
        free.forward_log_det_jacobian(x), fixed.forward_log_det_jacobian(x)
    )


def test_only_the_free_entries_are_read() -> None:
    x = reference.random_trapezoid(np.random.default_rng(2), 4, 2)
    bijector = TallCholeskyOuterProduct(2)
    np.testing.assert_allclose(bijector.forward(x + ~np.tri(4, 2, dtype=bool)), x @ x.T)
    y = np.where(np.tri(4, 4, dtype=bool) & (np.arange(4) < 2), x @ x.T, np.nan)
    np.testing.assert_allclose(bijector.inverse(y), x, atol=1e-12)


def test_shapes() -> None:
    bijector = TallCholeskyOuterProduct(2)
    assert bijector.rank == 2
    assert bijector.forward_event_shape([4, 2]) == [4, 4]
    assert bijector.forward_event_shape([5, None, 2]).as_list() == [5, None, None]
    assert bijector.inverse_event_shape([5, 4, 4]) == [5, 4, 2]
    assert bijector.forward_event_shape(None).rank is None
    assert bijector.inverse_event_shape(None).rank is None
    np.testing.assert_array_equal(bijector.forward_event_shape_tensor([5, 4, 2]), [5, 4, 4])
    np.testing.assert_array_equal(bijector.inverse_event_shape_tensor([5, 4, 4]), [5, 4, 2])
    full = TallCholeskyOuterProduct()
    assert full.rank is None
    assert full.inverse_event_shape([4, 4]) == [4, 4]
    np.testing.assert_array_equal(full.inverse_event_shape_tensor([4, 4]), [4, 4])
    assert bijector.experimental_batch_shape() == []
    assert bijector.parameter_properties() == {}
    assert bijector.copy(rank=3).rank == 3


@pytest.mark.parametrize("rank", [0, -1, 1.0, True, "2"])
def test_bad_ranks_raise(rank: object) -> None:
    with pytest.raises(ValueError, match="rank must be"):
        TallCholeskyOuterProduct(rank)  # type: ignore[arg-type]


def test_inputs_of_another_shape_raise() -> None:
    bijector = TallCholeskyOuterProduct(2)
    for shape in ([4, 3], [1, 2], [2]):
        with pytest.raises(ValueError, match="input must have"):
            bijector.forward(np.ones(shape))
    with pytest.raises(ValueError, match="rank must be at most"):
        bijector.inverse(np.eye(1))
    with pytest.raises(ValueError, match="square"):
        bijector.inverse(np.ones([4, 2]))


def test_the_diagonal_is_asserted_if_asked() -> None:
    bijector = TallCholeskyOuterProduct(validate_args=True)
    for method in (bijector.forward, bijector.forward_log_det_jacobian):
        with pytest.raises(tf.errors.InvalidArgumentError, match="positive diagonal"):
            method(-np.eye(2))


def test_an_input_that_is_not_positive_is_nan() -> None:
    inverse = TallCholeskyOuterProduct().inverse(-np.eye(2)).numpy()
    assert np.all(np.isnan(inverse[np.tri(2, dtype=bool)]))
