"""The devices of a training run."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import tensorflow as tf

__all__ = ["are_on_gpu", "beside"]


def beside(variables: Sequence[tf.Variable]) -> contextlib.AbstractContextManager[None]:
    """Place on the device of ``variables`` whatever is made within; nowhere if they have several.

    XLA takes no variable from another device than the one that it compiles for.

    :param variables: Those of a model.
    """
    devices = {variable.device for variable in variables}
    return tf.device(devices.pop()) if len(devices) == 1 else contextlib.nullcontext()


def are_on_gpu(variables: Sequence[tf.Variable]) -> bool:
    """Say whether all of ``variables`` are on a GPU.

    :param variables: Those of a model.
    """
    devices = [tf.DeviceSpec.from_string(variable.device) for variable in variables]
    return all(device.device_type == "GPU" for device in devices)
