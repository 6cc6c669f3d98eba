"""The commands of the lab. They are found where there is a checkout; nothing imports them."""

from __future__ import annotations

__all__ = []
