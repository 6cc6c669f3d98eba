"""Every subject of the package can be prepared and done."""

from __future__ import annotations

import gpflow
import pytest

from gpflow_dwp.lab.benchmarks.measurement import Subject
from gpflow_dwp.lab.benchmarks.shapes import MODELS, Shape, posterior_arguments
from gpflow_dwp.lab.benchmarks.subjects import floor_subject, prediction_subject, step_subject

SHAPE = Shape(8, 2, 4, 2, 2)
SUBJECTS = [
    *(step_subject(model, SHAPE, "float64") for model in MODELS),
    *(
        prediction_subject("A-whitened", SHAPE, "float32", task)
        for task in ("predict_f", "predict_y", "draws and predict_y")
    ),
    *(floor_subject(f"floor of {model}", model, SHAPE, "float64") for model in ("AB", None)),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.title)
def test_every_task_can_be_done(subject: Subject) -> None:
    with gpflow.config.as_context():
        subject.prepare(*subject.arguments)(2)


def test_a_name_says_what_the_posterior_is() -> None:
    assert posterior_arguments("A-whitened") == {"posterior": "A", "whiten": True}
    assert posterior_arguments("AB") == {"posterior": "AB", "whiten": False}
