"""The mixture of a prior's scale with a learned one."""

from __future__ import annotations

import numpy as np

from gpflow_dwp.layers import ScaleMixture


def test_mix_is_the_papers_formula_times_df() -> None:
    rng = np.random.default_rng(0)
    mixture = ScaleMixture(3, rng)
    mixture.proportion.assign(0.3)
    mixture.root_scale.assign(1.7)
    covariance = rng.normal(size=(2, 3, 3))
    V, df = mixture.root.numpy(), 5

    mixed = mixture.mix(covariance, df)

    scale = covariance / df
    np.testing.assert_allclose(mixed, df * (0.7 * scale + 0.3 * 1.7 * V @ V.T / 3), rtol=1e-12)
