"""Cases by name and seed: ``load`` returns X [N, D], y [N], and X and y of a test set.

Functions with noise or without, and tables that are made here after data that people bring: ties,
many zeros, bounds, a fast wave. Claims are made on seeds 0 to 6; choose defaults on seeds from 10
on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from cases.sixty import FUNCTIONS
from scipy.integrate import solve_ivp
from scipy.stats import qmc

Array = npt.NDArray[np.float64]
Case = tuple[Array, Array, Array, Array]
Table = Callable[[np.random.Generator, int], tuple[Array, Array]]

PROBLEMS: dict[str, tuple[str, int, float]] = {
    "step": ("step", 40, 0.05),
    "three_steps": ("three_steps", 80, 0.05),
    "higdon": ("higdon", 60, 0.1),
    "xiong": ("xiong", 30, 0.0),
    "gramacy_lee": ("gramacy_lee", 100, 0.0),
    "gramacy_lee_noisy": ("gramacy_lee", 100, 0.01),
    "cliff": ("cliff", 150, 0.1),
    "schaffer4": ("schaffer4", 100, 0.0),
    "g_function": ("g_function", 200, 0.0),
    "borehole": ("borehole", 150, 0.0),
    "friedman": ("friedman", 150, 1.0),
    "additive_steps": ("additive_steps", 200, 0.2),
    "additive_waves": ("additive_waves", 400, 0.0),
    "additive_wells": ("additive_wells", 200, 0.0),
}
"""By name: the function, its runs, and the deviation of noise, which test rows have, too."""

EMULATORS: dict[str, tuple[int, int]] = {
    "jump": (10, 40),
    "booth": (20, 40),
    "swirl": (24, 100),
    "ignition": (200, 1000),
    "ishigami": (100, 300),
    "otl_circuit": (60, 1000),
    "piston": (70, 1000),
    "borehole": (80, 1000),
    "robot_arm": (100, 1000),
    "lotka_volterra": (60, 120),
}
"""By function: runs without noise of a small and of a large design, NAME-small and NAME-large."""


def ratings(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.uniform(size=(n, 2))
    return X, np.clip(np.round(3 + 2 * (X[:, 0] - 0.5) + 0.8 * rng.standard_normal(n)), 1, 5)


def rain(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.uniform(size=(n, 2))
    wet = np.exp(1 + 2 * X[:, 0] + 0.6 * rng.standard_normal(n))
    return X, np.where(rng.uniform(size=n) < 0.6, 0.0, wet)


def share(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.uniform(size=(n, 2))
    return X, np.clip(1.2 * X[:, 0] - 0.1 + 0.1 * rng.standard_normal(n), 0, 1)


def claims(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.uniform(size=(n, 2))
    return X, rng.poisson(np.exp(3 * X[:, 0] - 1)).astype(float)


def unix_seconds(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    t = 1.6e9 + 60.0 * rng.choice(20_000, n, replace=False)
    return t[:, None], 10 + 3 * np.sin(2 * np.pi * t / 86_400) + 0.3 * rng.standard_normal(n)


def twelve_orders(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.uniform(size=(n, 2))
    return X, np.exp(-28 * X[:, 0]) * (1 + X[:, 1])


def rows(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    X = rng.uniform(-1.0, 1.0, (n, 8))
    y = np.sin(3.0 * X[:, 0] * X[:, 1]) + X[:, 2] ** 2 + 0.5 * X[:, 3]
    return X, y + 0.1 * rng.standard_normal(n)


TABLES: dict[str, tuple[Table, int, int]] = {
    "ratings": (ratings, 240, 300),
    "rain": (rain, 240, 300),
    "share": (share, 240, 300),
    "claims": (claims, 240, 300),
    "unix_seconds": (unix_seconds, 240, 100),
    "twelve_orders": (twelve_orders, 110, 100),
}
"""By name: what draws rows, and the numbers of those for training and for test."""


GROWING: dict[str, tuple[str, float]] = {
    "periods": ("periods", 0.3),
    "friedman": ("friedman", 1.0),
    "three_steps": ("three_steps", 0.05),
    "daily": ("day", 0.3),
    "ripples": ("ripples", 0.0),
}
"""By name: the function, and the deviation of the noise of NAME-1001 with so many rows."""


def lotka_volterra(X: Array, num_times: int = 50) -> Array:
    """Predators and prey [N, 2 * num_times] of four rates, X [N, 4] in the unit cube."""
    low, high = np.array([0.5, 0.02, 0.5, 0.02]), np.array([1.0, 0.08, 1.0, 0.08])
    times = np.linspace(0, 15, num_times)

    def run(a: float, b: float, c: float, d: float) -> Array:
        def rates(_: float, z: Array) -> tuple[float, float]:
            return a * z[0] - b * z[0] * z[1], d * z[0] * z[1] - c * z[1]

        return solve_ivp(rates, (0, 15), (30, 10), t_eval=times, rtol=1e-8).y.ravel()

    return np.stack([run(*each) for each in low + X * (high - low)])


def borehole_of_levels(x: Array, level: npt.NDArray[np.int64]) -> Array:
    """The borehole, whose radius has six values in any order."""
    radius = np.array([0.6, 0.0, 1.0, 0.2, 0.8, 0.4])[level]
    return FUNCTIONS["borehole"](np.column_stack([radius, x]))


def beam_of_levels(x: Array, level: npt.NDArray[np.int64]) -> Array:
    """Deflection of a beam of length 10 to 20 and height 1 to 2, of one of six sections."""
    inertia = np.array([0.0491, 0.0833, 0.0449, 0.0633, 0.0373, 0.0167])[level]
    return 1e-3 * (10.0 + 10.0 * x[:, 0]) ** 3 / ((1.0 + x[:, 1]) ** 4 * inertia)


def waves_of_levels(x: Array, level: npt.NDArray[np.int64]) -> Array:
    """Waves whose phases come in three groups of eight levels."""
    phase = np.array([0.0, 0.1, 1.5, 1.6, 3.0, 3.1, 0.2, 1.4])[level]
    return np.sin(4.0 * x[:, 0] + phase) + x[:, 1] ** 2 * np.cos(phase)


LEVELS: dict[str, tuple[Callable[[Array, npt.NDArray[np.int64]], Array], int, int, int]] = {
    "borehole-levels": (borehole_of_levels, 7, 6, 70),
    "beam-levels": (beam_of_levels, 2, 6, 48),
    "waves-levels": (waves_of_levels, 2, 8, 64),
}
"""Functions of numbers and a category, after Zhang et al. (2020): numbers, levels and runs."""


def load(name: str, seed: int) -> Case:
    """Training and test rows of a case.

    :param name: Of ``PROBLEMS``, ``TABLES`` or ``EMULATORS`` (with a size), of ``LEVELS``, of
        ``GROWING`` with a number of rows, or ``rows-20000``: a smooth function of eight inputs with
        noise.
    """
    rng = np.random.default_rng(seed)
    stem, _, size = name.rpartition("-")
    if name in PROBLEMS:
        key, n, noise = PROBLEMS[name]
        f = FUNCTIONS[key]
        m = 300
        order = np.stack([rng.permutation(n) for _ in range(f.num_inputs)], axis=1)
        X, T = (order + rng.uniform(size=order.shape)) / n, rng.uniform(size=(m, f.num_inputs))
        y = f(X) + noise * rng.standard_normal(n)
        return X, y, T, f(T) + noise * rng.standard_normal(m)
    if name in LEVELS:
        of_levels, D, L, n = LEVELS[name]
        x, t = qmc.LatinHypercube(D, rng=seed).random(n), rng.uniform(size=(1_000, D))
        level, other = rng.permutation(np.arange(n) % L), rng.integers(0, L, 1_000)
        X, T = np.hstack([x, np.eye(L)[level]]), np.hstack([t, np.eye(L)[other]])
        return X, of_levels(x, level), T, of_levels(t, other)
    if name in TABLES or stem == "rows":
        make, n, m = TABLES[name] if name in TABLES else (rows, int(size), 500)
        X, y = make(rng, n + m)
        return X[:n], y[:n], X[n:], y[n:]
    if stem in GROWING and size.isdecimal():
        (function, noise), n, m = GROWING[stem], int(size), 1_000
        f = FUNCTIONS[function]
        of_X, of_T, of_noise = rng.spawn(3)  # the rows of n are the first n of more
        X, T = of_X.uniform(size=(n, f.num_inputs)), of_T.uniform(size=(m, f.num_inputs))
        if stem == "daily":  # hours in days: more rows are more days
            X, T = np.arange(n)[:, None] / 24, n / 24 * T
        return X, f(X) + noise * of_noise.standard_normal(n), T, f(T)
    if stem in EMULATORS and size in ("small", "large"):
        return _emulator(stem, seed, EMULATORS[stem][size == "large"])
    raise ValueError(f"name must be of a case, got {name!r}")


def _emulator(name: str, seed: int, n: int) -> Case:
    """A Latin hypercube and scrambled Sobol points for test; of one input grids."""
    several = name == "lotka_volterra"
    D = 4 if several else FUNCTIONS[name].num_inputs
    f = lotka_volterra if several else FUNCTIONS[name]
    if D == 1:
        X, T = (np.linspace(0, 1, m)[:, None] for m in (n, 500))
    else:
        X = qmc.LatinHypercube(D, optimization="random-cd", seed=seed).random(n)
        T = qmc.Sobol(D, seed=10_000 + seed).random_base2(10)[:1000]
    return X, f(X), T, f(T)
