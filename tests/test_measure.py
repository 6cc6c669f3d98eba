"""The script that measures the package counts what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

from package_source import ROOT

FILES = {
    "toy/__init__.py": '__all__ = ["one", "two"]\n',
    "toy/room/__init__.py": '__all__ = ["three"]\nfrom toy.room.first import f\n',
    "toy/room/inner/__init__.py": '__all__ = ["not", "counted"]\n',
    "toy/room/first.py": (
        "from toy.room import second\n\n\n"
        "def f(a, b, *c, d, e, **g):\n    '''Documented.'''\n\n    def h():\n        pass\n\n\n"
        "def _private():\n    pass\n"
    ),
    "toy/room/second.py": (
        "import typing\n\nif typing.TYPE_CHECKING:\n    import toy.alone\n\n\n"
        "class C:\n    def long(self, x):\n        from toy.room import third\n"
        + "        x += 1\n" * 60
        + "\n\nfrom .first import f\n"
    ),
    "toy/room/third.py": "from toy.room import second\n",
    "toy/alone.py": "import toy.room.second\n",
    "tests/test_toy.py": "\n" * 50,
}


def test_a_toy_package_is_counted(tmp_path: Path) -> None:
    """Catches imports that are missed, made up (in a function, for typing), or not resolved."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    script = runpy.run_path(str(ROOT / "ci" / "measure.py"))

    assert script["measure"](tmp_path / "toy", tmp_path / "tests") == {
        "files / lines": "7 / 90",
        "median / p90 / max file": "1 / 72 / 72",
        "public functions / classes documented": "33% / 0%",
        "functions over 60 lines": "1",
        "parameters p90 / max / functions with over 5": "6 / 6 / 1",
        "public names, top / below": "2 / 1",
        "import cycles": "toy.room.first, toy.room.second",
        "test : source": "0.56 (50 lines)",
    }
    assert script["rooms"](tmp_path / "toy") == {"room": 88, "(top)": 2}
