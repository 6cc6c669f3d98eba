"""The sixty functions of Rumsey, Gibson, Francom and Morris (2025), on the unit cube.

"All emulators are wrong, many are useful" (arXiv:2512.09060) names them and their sources. Formulas
are those of the Virtual Library of Simulation Experiments and of the papers named there; constants
that no paper has are those of the authors' package duqling. ``SIXTY`` names them; those of physics
are in ``physics.py``, and the better known ones in ``functions.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import cases.physics  # noqa: F401 (fills FUNCTIONS)
import numpy as np
from cases.functions import FUNCTIONS, Array, Function, friedman, gramacy_lee, inputs
from scipy.stats import norm

_FOLDER = Path(__file__).parent


for _count in (1, 3, 15):  # constants, with one name for one input
    _name = f"const_fn{_count if _count > 1 else ''}"
    FUNCTIONS[_name] = Function(lambda *x: np.zeros_like(x[0]), np.zeros(_count), np.ones(_count))
for _name, _same in {
    "circuit": "otl_circuit",
    "robot": "robot_arm",
    "grlee2": "gramacy_lee",
}.items():
    FUNCTIONS[_name] = FUNCTIONS[_same]


# Jumps and regimes


@inputs(count=3)
def cube3(a: Array, b: Array, c: Array) -> Array:
    first = (a > 0.2) & (a < 0.5) & (b > 0.1) & (b < 0.6) & (c < 0.4)
    second = (a > 0.3) & (a < 0.85) & (b > 0.5) & (b < 0.9) & (c < 0.8)
    third = (a > 0.35) & (a < 0.45) & (b < 0.75)
    return 1.0 * first + second + third


@inputs(count=3)
def cube3_rotate(a: Array, b: Array, c: Array) -> Array:
    return cube3.formula((a + b + c) / 3, (1 + 2 * a - b + c / 10) / 3, c)


@inputs(count=5)
def cube5(*x: Array) -> Array:
    inside = np.all([(each > 0.25) & (each < 0.75) for each in x], axis=0)
    return cube3.formula(*x[:3]) + inside + 5.0 * (x[4] > 1 / 3)


@inputs(count=2)
def foursquare(a: Array, b: Array) -> Array:
    bump = np.exp(-30 * ((a - 0.75) ** 2 + (b - 0.75) ** 2))
    corner = 8.16 * np.maximum(0.35 - a, 0) * np.maximum(0.35 - b, 0)
    right = a > 0.75
    blocks = 0.33 * right + 0.36 * (right & (b > 0.25)) + 0.10 * ((a > 0.85) & (b > 0.25))
    return bump + b - 1.375 * a + corner + blocks + 0.45 * ((a > 0.5) & (b < 0.5))


@inputs(count=3)
def sharkfin(*x: Array) -> Array:
    """Stairs of 27 levels, by the digits of x to the base of three."""
    place = np.clip(np.ceil(27 * np.stack(x)) - 1, 0, 26).astype(int)
    digit = np.array([0, 1, -1])
    return sum(k * digit[place // 3 ** (k - 1) % 3] for k in (1, 2, 3)).mean(0) / 6


_STAR = np.array([[*line] for line in (_FOLDER / "star2.txt").read_text().split()]) == "1"
_LANDMARKS = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.5], [0.2, 0.8], [0.8, 0.8]])
_INSIDE, _OUTSIDE = np.array([[0.8, -0.5, 0.3, 0.6, -0.7], [-0.4, 0.7, -0.6, 0.2, 0.5]])


@inputs(count=2)
def star2(a: Array, b: Array) -> Array:
    """One surface inside of a star, another outside; star2.txt is its mask."""
    squares = ((np.stack([a, b], -1)[..., None, :] - _LANDMARKS) ** 2).sum(-1)
    inside = 1 + 3 * np.exp(-squares / 0.02) @ _INSIDE
    outside = -1 + 3 * np.exp(-squares / 0.08) @ _OUTSIDE
    return np.where(_STAR[tuple(np.rint(100 * np.stack([a, b])).astype(int))], outside, inside)


# Waves and ridges


_RIPPLES = np.array(
    [[-0.138, 1.905], [0.348, 1.520], [1.628, -1.533], [-1.452, 0.185], [0.955, -1.440]]
)


@inputs(count=2)
def ripples(a: Array, b: Array) -> Array:
    phases = np.pi * np.arange(3, 12, 2)[:, None] * (_RIPPLES @ np.stack([a, b]))
    return np.sin(phases).sum(0) / 20


@inputs((0, 2 * np.pi), count=2)
def multivalley(a: Array, b: Array) -> Array:
    first, second = np.sin(a**2 / np.pi) ** 20, np.sin(2 * b**2 / np.pi) ** 20
    return -np.sin(a) * first - np.sin(b) * second


@inputs(count=2)
def squiggle(a: Array, b: Array) -> Array:
    ridge = 0.5 + np.sin(2 * np.pi * a**2) / 4 - a / 10
    return a * b * norm.pdf(b, ridge, 0.05)


@inputs((0.5, 2.5))
def grlee1(x: Array) -> Array:
    return np.sin(10 * np.pi * x) / (2 * x) + (x - 1) ** 4


@inputs(count=6)
def grlee6(*x: Array) -> Array:
    return np.exp(np.sin((0.9 * (x[0] + 0.48)) ** 10)) + x[1] * x[2] + x[3]


@inputs((-2, 2), (-1, 3))
def banana(a: Array, b: Array) -> Array:
    return (1 - a) ** 2 + 100 * (b - a**2) ** 2


@inputs()
def forrester1(x: Array) -> Array:
    """With 0.5 where Forrester et al. (2008) have 2: as in the benchmark."""
    return (6 * x - 0.5) ** 2 * np.sin(12 * x - 4)


@inputs()
def forrester1_low_fidelity(x: Array) -> Array:
    return 0.5 * forrester1.formula(x) + 10 * (x - 0.5) + 5


def _product(offsets: list[float], name: str) -> None:
    """Sobol's function: a product of kinks, flatter the larger an offset."""
    a = np.array(offsets)[:, None]

    def formula(*x: Array) -> Array:
        return np.prod((np.abs(4 * np.stack(x) - 2) + a) / (1 + a), axis=0)

    FUNCTIONS[name] = Function(formula, np.zeros(len(offsets)), np.ones(len(offsets)))


_product([0, 0.25, 0.5], "Gfunction")
_product([0] * 2 + [6.52] * 4, "Gfunction6")
_product([0] * 2 + [6.52] * 4 + [9] * 2 + [15, 25, 50, 99], "Gfunction12")
_product([0] * 4 + [1] * 4 + [9] * 4 + [18] * 4 + [99] * 2, "Gfunction18")


# Polynomials and other smooth functions of few inputs


@inputs(count=2)
def simple_poly(a: Array, b: Array) -> Array:
    return a**2 + a * b + b**3 / 9


@inputs(count=2)
def lim_polynomial(a: Array, b: Array) -> Array:
    cubic = -7.5 * a**3 - 2.5 * a * b**2 - 5.5 * b**4 + a**3 * b**2
    return 9 + 2.5 * a - 17.5 * b + 2.5 * a * b + 19 * b**2 + cubic


@inputs(count=2)
def lim_non_polynomial(a: Array, b: Array) -> Array:
    return ((30 + 5 * a * np.sin(5 * a)) * (4 + np.exp(-5 * b)) - 100) / 6


@inputs(count=2)
def twin_galaxies(a: Array, b: Array) -> Array:
    hills = 5 * gramacy_lee.formula(8 * a - 2, 8 * b - 2)
    return 0.55 * lim_polynomial.formula(a, b) + hills + ripples.formula(a, b)


@inputs(count=2)
def dms_simple(a: Array, b: Array) -> Array:
    return 10.391 * ((a - 0.4) * (b - 0.6) + 0.36)


@inputs((-0.5, 0.5), count=2)
def dms_radial(a: Array, b: Array) -> Array:
    r = a**2 + b**2
    return 24.234 * r * (0.75 - r)


@inputs((-0.5, 0.5), count=2)
def dms_harmonic(a: Array, b: Array) -> Array:
    return 42.659 * (0.1 + a * (0.05 + a**4 - 10 * a**2 * b**2 + 5 * b**4))


@inputs(count=2)
def dms_additive(a: Array, b: Array) -> Array:
    first = 1.5 * (1 - a) + np.exp(2 * a - 1) * np.sin(3 * np.pi * (a - 0.6) ** 2)
    return 1.3356 * (first + np.exp(3 * (b - 0.5)) * np.sin(4 * np.pi * (b - 0.9) ** 2))


@inputs(count=2)
def dms_complicated(a: Array, b: Array) -> Array:
    return 1.9 * (1.35 + np.exp(a - b) * np.sin(13 * (a - 0.6) ** 2) * np.sin(7 * b))


@inputs(count=4)
def park4(a: Array, b: Array, c: Array, d: Array) -> Array:
    root = a / 2 * (np.sqrt(1 + (b + c**2) * d / a**2) - 1)
    return root + (a + 3 * d) * np.exp(1 + np.sin(c))


@inputs(count=4)
def park4_low_fidelity(a: Array, b: Array, c: Array, d: Array) -> Array:
    shift = b**2 + c**2 + 0.5 - 2 * a
    return (1 + np.sin(a) / 10) * park4.formula(a, b, c, d) + shift


@inputs(count=3)
def detpep_curve(a: Array, b: Array, c: Array) -> Array:
    bend = (3 - 4 * b) ** 2 + 16 * np.sqrt(c + 1) * (2 * c - 1) ** 2
    return 4 * (a - 2 + 8 * b - b**2) ** 2 + bend


@inputs(count=8)
def detpep8(*x: Array) -> Array:
    sums = np.cumsum(x[2:], axis=0)[1:]
    return detpep_curve.formula(*x[:3]) + (np.arange(4, 9)[:, None] * np.log1p(sums)).sum(0)


# Many inputs


for _count in (10, 20):
    FUNCTIONS[f"friedman{_count}"] = Function(
        lambda *x: friedman.formula(*x[:5]), np.zeros(_count), np.ones(_count)
    )


@inputs((-0.5, 0.5), count=20)
def welch20(*x: Array) -> Array:
    at = dict(enumerate(x, 1))
    linear = {2: 0.05, 3: 0.08, 5: 1, 6: -0.03, 7: 0.03, 9: -0.09, 10: -0.01, 11: -0.07, 14: -0.04}
    linear |= {15: 0.06, 17: -0.01, 18: -0.03, 19: -5}
    curved = 5 * at[12] / (1 + at[1]) + 5 * (at[4] - at[20]) ** 2 + 40 * at[19] ** 3
    return curved + 0.25 * at[13] ** 2 + sum(weight * at[k] for k, weight in linear.items())


_OAKLEY = np.loadtxt(_FOLDER / "oo15.csv", delimiter=",")


@inputs((-3, 3), count=15)
def oo15(*x: Array) -> Array:
    """Oakley and O'Hagan (2004); oo15.csv has weights of x, sin x and cos x, and a matrix."""
    z, (linear, sine, cosine), matrix = np.stack(x), _OAKLEY[:3], _OAKLEY[3:]
    return linear @ z + sine @ np.sin(z) + cosine @ np.cos(z) + (z * (matrix @ z)).sum(0)


@inputs((-16, 16), count=16)
def permdb(*x: Array) -> Array:
    j = np.arange(1.0, 17.0)[:, None]
    ratio = np.stack(x) / j
    sums = (((j**i + 0.5) * (ratio**i - 1)).sum(0) for i in range(1, 17))
    return sum(each**2 for each in sums) / 16.0**33


@inputs(*[(1, 2)] * 19, (1, 3), *[(1, 2)] * 80)
def onehundred(*x: Array) -> Array:
    z = np.stack(x)
    each = z**3 - 5 * z + np.log(z**2 + z**4) / 3
    mixed = x[0] * x[1] ** 2 + x[1] * x[3] - x[2] * x[4] + x[50] + x[49] * x[53] ** 2
    return 3 + np.arange(1, 101) @ each / 100 + mixed


class Printed(NamedTuple):
    """Inputs of a function, and its mean and deviation over the unit cube as its authors say."""

    inputs: int
    mean: float
    deviation: float


def _read() -> dict[str, Printed]:
    rows = (line.split(",") for line in (_FOLDER / "sixty.csv").read_text().split()[1:])
    return {name: Printed(int(count), float(m), float(s)) for name, count, m, s in rows}


SIXTY = _read()
