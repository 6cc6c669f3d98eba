"""Test functions of computer experiments, on the unit cube.

A function is called with X [N, D] in the unit cube and returns y [N]; its formula has one argument
for each input, [N], in the units and ranges of its source. Formulas without a source are of the
literature's common stock (Surjanovic and Bingham, Virtual Library of Simulation Experiments).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import erf

Array = npt.NDArray[np.float64]
FUNCTIONS: dict[str, Function] = {}


@dataclass(frozen=True)
class Function:
    """A formula, and the ranges [D] of its inputs."""

    formula: Callable[..., Array]
    low: Array
    high: Array

    @property
    def num_inputs(self) -> int:
        """D."""
        return len(self.low)

    def __call__(self, X: Array) -> Array:
        """Values [N] at points X [N, D] of the unit cube."""
        return self.formula(*(self.low + X * (self.high - self.low)).T)


def inputs(
    *ranges: tuple[float, float], count: int | None = None
) -> Callable[[Callable[..., Array]], Function]:
    """Put a formula into ``FUNCTIONS``.

    :param ranges: Of each input; of all where there is one.
    :param count: D, where there is one range or none, which is (0, 1).
    """
    low, high = np.array((ranges or ((0.0, 1.0),)) * (count or 1), float).T

    def register(formula: Callable[..., Array]) -> Function:
        FUNCTIONS[formula.__name__] = Function(formula, low, high)
        return FUNCTIONS[formula.__name__]

    return register


# Jumps, cliffs and regimes, where depth pays.


@inputs()
def step(x: Array) -> Array:
    return (x > 0.5).astype(float)


@inputs()
def three_steps(x: Array) -> Array:
    return 1.0 * (x > 0.2) - 2.0 * (x > 0.45) + 1.5 * (x > 0.8)


@inputs()
def jump(x: Array) -> Array:
    return np.where(x < 0.5, -1.0, 1.0)


@inputs()
def booth(x: Array) -> Array:
    wave = np.sin(6 * np.pi * x) + np.cos(12 * np.pi * x)
    return np.where(x <= 0.58, wave, 5 * x - 4.9)


@inputs((0, 20))
def higdon(x: Array) -> Array:
    wave = np.sin(np.pi * x / 5) + 0.2 * np.cos(4 * np.pi * x / 5)
    return np.where(x < 10, wave, x / 10 - 1)


@inputs()
def xiong(x: Array) -> Array:
    return np.sin(30 * (x - 0.9) ** 4) * np.cos(2 * (x - 0.9)) + (x - 0.9) / 2


@inputs((-2, 6), count=2)
def gramacy_lee(a: Array, b: Array) -> Array:
    return a * np.exp(-(a**2) - b**2)


@inputs((-1, 1), count=2)
def cliff(a: Array, b: Array) -> Array:
    return np.sin(5 * a) * (b > 0)


@inputs((-2, 2), count=2)
def schaffer4(a: Array, b: Array) -> Array:
    ridge = np.cos(np.sin(np.abs(a**2 - b**2))) ** 2 - 0.5
    return 0.5 + ridge / (1 + 0.001 * (a**2 + b**2)) ** 2


@inputs((0.3, 1.0), count=2)
def swirl(a: Array, b: Array) -> Array:
    return np.sin(1 / (a * b))


@inputs(count=4)
def g_function(*x: Array) -> Array:
    a = np.array([[0.0], [1.0], [4.5], [9.0]])
    return np.prod((np.abs(4 * np.stack(x) - 2) + a) / (1 + a), axis=0)


@inputs(count=10)
def ignition(*x: Array) -> Array:
    r = np.sqrt(np.square(x).sum(axis=0))
    return np.log10(r**5 * (1 + 1e5 * (1 + erf(10 * (r - 2)))))


# Smooth, where depth must not hurt.


@inputs()
def periods(x: Array) -> Array:
    return np.sin(240 * np.pi * x)


@inputs()
def day(x: Array) -> Array:
    return np.sin(2 * np.pi * x)


@inputs(count=5)
def friedman(a: Array, b: Array, c: Array, d: Array, e: Array) -> Array:
    return 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e


@inputs((-np.pi, np.pi), count=3)
def ishigami(a: Array, b: Array, c: Array) -> Array:
    return np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)


@inputs((50, 150), (25, 70), (0.5, 3), (1.2, 2.5), (0.25, 1.2), (50, 300))
def otl_circuit(rb1: Array, rb2: Array, rf: Array, rc1: Array, rc2: Array, beta: Array) -> Array:
    base, gain = 12 * rb2 / (rb1 + rb2), beta * (rc2 + 9)
    feedback = 11.35 * rf + 0.74 * rf * gain / rc1
    return ((base + 0.74) * gain + feedback) / (gain + rf)


@inputs(
    *((30, 60), (0.005, 0.02), (0.002, 0.01), (1000, 5000)),
    *((9e4, 1.1e5), (290, 296), (340, 360)),
)
def piston(mass: Array, area: Array, v0: Array, k: Array, p0: Array, ta: Array, t0: Array) -> Array:
    force = p0 * area + 19.62 * mass - k * v0 / area
    gas = p0 * v0 * ta / t0
    volume = area / (2 * k) * (np.sqrt(force**2 + 4 * k * gas) - force)
    return 2 * np.pi * np.sqrt(mass / (k + area**2 * gas / volume**2))


@inputs(
    *((0.05, 0.15), (100, 50_000), (63_070, 115_600), (990, 1110)),
    *((63.1, 116), (700, 820), (1120, 1680), (9855, 12_045)),
)
def borehole(
    rw: Array, r: Array, tu: Array, hu: Array, tl: Array, hl: Array, length: Array, kw: Array
) -> Array:
    log_ratio = np.log(r / rw)
    resistance = log_ratio * (1 + tu / tl) + 2 * length * tu / (rw**2 * kw)
    return 2 * np.pi * tu * (hu - hl) / resistance


@inputs(*[(0, 2 * np.pi)] * 4, *[(0, 1)] * 4)
def robot_arm(*x: Array) -> Array:
    angles, lengths = np.cumsum(x[:4], axis=0), np.stack(x[4:])
    return np.hypot((lengths * np.cos(angles)).sum(0), (lengths * np.sin(angles)).sum(0))


# Sums over single inputs.


@inputs(count=4)
def additive_steps(a: Array, b: Array, c: Array, d: Array) -> Array:
    return 2.0 * (a > 0.35) - 1.5 * (b > 0.6) + 1.0 * (c > 0.2) - 1.0 * (c > 0.7) + 0.5 * d


@inputs(count=6)
def additive_waves(*x: Array) -> Array:
    waves = np.arange(1, 7)[:, None]
    return (np.sin(2 * np.pi * waves * np.stack(x)) / np.sqrt(waves)).sum(0)


@inputs(count=6)
def additive_wells(*x: Array) -> Array:
    centres, widths = np.linspace([0.2], [0.8], 6), np.geomspace([0.04], [0.3], 6)
    return -np.exp(-0.5 * ((np.stack(x) - centres) / widths) ** 2).sum(0)
