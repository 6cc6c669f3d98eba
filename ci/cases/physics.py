"""Functions of physics and engineering among the sixty of ``sixty.py``, on the unit cube."""

from __future__ import annotations

import numpy as np
from cases.functions import Array, borehole, inputs
from scipy.stats import gamma


def _normal(mean: float, deviation: float, low: float = -4.0) -> tuple[float, float]:
    """From ``low`` to four deviations around a mean: ranges of the structures."""
    return mean + low * deviation, mean + 4.0 * deviation


def _powers(centre: float, factor: float) -> tuple[float, float]:
    """Three factors around a centre, down and up."""
    return centre / factor**3, centre * factor**3


_CANTILEVER = (
    *(_normal(40_000, 2_000), _normal(2.9e7, 1.45e6), _normal(500, 100), _normal(1_000, 100)),
    *(_normal(4, 0.25), _normal(2, 0.25)),
)


@inputs(*_CANTILEVER)
def cantilever_D(_: Array, e: Array, x: Array, y: Array, w: Array, t: Array) -> Array:
    displacement = 4e6 / (e * w * t) * np.hypot(y / t**2, x / w**2)
    return np.minimum(displacement, 2.2535)


@inputs(*_CANTILEVER)
def cantilever_S(r: Array, _: Array, x: Array, y: Array, w: Array, t: Array) -> Array:
    return np.minimum(600 * (y / t + x / w) / (w * t), r)


@inputs((0.01, 20), (0.01, 6), (1e-4, 0.04), (730, 3200), (1500, 2500), (25, 77), (0.005, 0.0055))
def crater(
    length: Array, d: Array, rho: Array, v: Array, v_break: Array, strength: Array, tile: Array
) -> Array:
    excess = np.maximum(v - v_break, 0) ** (2 / 3)
    scale = 0.0195 * (length / d) ** 0.45 * d * rho**0.27
    return scale * excess / (strength**0.25 * tile ** (1 / 6))


@inputs((0, 50), (1, 10), (0.5, 5), (1, 10), (0.5, 5), (0, 1), (0, 10))
def gamma_mix(
    x: Array, a1: Array, b1: Array, a2: Array, b2: Array, w: Array, start: Array
) -> Array:
    parts = (gamma.pdf(x - start, a, scale=1 / b) for a, b in ((a1, b1), (a2, b2)))
    return w * next(parts) + (1 - w) * next(parts)


@inputs((0, 1), (0, 1), (0.5, 3))
def rabbits(start: Array, time: Array, rate: Array) -> Array:
    growth = np.exp(rate * time)
    return start * growth / (1 + start * (growth - 1))


@inputs(*zip(borehole.low, borehole.high, strict=True))
def borehole_low_fidelity(
    rw: Array, r: Array, tu: Array, hu: Array, tl: Array, hl: Array, length: Array, kw: Array
) -> Array:
    log_ratio = np.log(r / rw)
    resistance = log_ratio * (1.5 + tu / tl) + 2 * length * tu / (rw**2 * kw)
    return 5 * tu * (hu - hl) / resistance


@inputs((7, 13), (0.02, 0.12), (0.01, 3), (30.01, 30.295))
def pollutant_uni(mass: Array, rate: Array, _place: Array, _time: Array) -> Array:
    """2.5 from a spill 30 before: the second spill comes later, and two inputs are idle."""
    return mass / np.sqrt(30 * rate) * np.exp(-(2.5**2) / (120 * rate))


@inputs(
    *((0.1, 0.4), (0.1, 0.4), (0.05, 0.2), (0.41, 1)),
    *((0.0276, 0.1702), (0.081, 0.21), (0.25, 0.5), (0.0833, 0.7)),
)
def ebola(
    b1: Array, b2: Array, b3: Array, rho: Array, g1: Array, g2: Array, omega: Array, psi: Array
) -> Array:
    return (b1 + b2 * rho * g1 / omega + b3 * psi / g2) / (g1 + psi)


@inputs((4.8, 5.1), (400, 3600), (100, 900), (3, 7), (10, 20))
def short_column(y: Array, moment: Array, force: Array, b: Array, h: Array) -> Array:
    return 1 - 4 * moment / (b * h**2 * y) - (force / (b * h * y)) ** 2


@inputs(
    *(_normal(400, 35), _normal(5e5, 5e4), _normal(6e5, 9e4), _normal(6e5, 9e4), _normal(300, 3)),
    *(_normal(20, 2), _normal(300, 5), _normal(30, 10, -2.999), _normal(2.1e5, 4200)),
)
def steel_column(*x: Array) -> Array:
    stress, dead, first, second, b, d, h, bow, e = x
    load = dead + first + second
    euler = np.pi**2 * e * b * d * h**2 / (2 * 7500**2)
    return stress - load * (1 / (2 * b * d) + bow * euler / (b * d * h * (euler - load)))


@inputs(
    *(_powers(0.76, 1.2), _powers(0.39, 1.1), _powers(0.85, 1.1), _powers(0.3, 1.3)),
    *(_powers(5.0, 1.4), _powers(1.7, 1.2), _powers(71, 1.15), _powers(0.5, 1.5)),
    _powers(5.5, 1.5),
)
def sulfur(transmittance: Array, cloud: Array, surface: Array, *rest: Array) -> Array:
    """Forcing by aerosols of sulphate, with the solar constant and the area of the earth."""
    product = transmittance**2 * cloud * surface**2 * np.prod(rest, axis=0)
    return -1.5 * 1366**2 / 5.1e14 * 1e9 / 365 * product


@inputs(
    *((150, 200), (220, 300), (6, 10), (-10, 10), (16, 45), (0.5, 1), (0.08, 0.18), (2.5, 6)),
    *((1700, 2500), (0.025, 0.08)),
)
def wingweight(*x: Array) -> Array:
    area, fuel, aspect, sweep, q, taper, thick, load, gross, paint = x
    cosine = np.cos(np.deg2rad(sweep))
    shape = (aspect / cosine**2) ** 0.6 * (100 * thick / cosine) ** -0.3
    weight = 0.036 * area**0.758 * fuel**0.0035 * q**0.006 * taper**0.04 * (load * gross) ** 0.49
    return weight * shape + area * paint
