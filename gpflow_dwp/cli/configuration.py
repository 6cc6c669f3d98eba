"""Options in a file: written by every run, and read in place of a command line."""

from __future__ import annotations

from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App, ArgumentCollection, Token

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.run_directory import Run
from gpflow_dwp.files import write_whole
from gpflow_dwp.optional import import_optional

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["options_as_plain", "read_configuration", "write_configuration"]

# What a run is not made of: where it goes, and what is shown of it.
_NOT_WRITTEN = ("config", "resume", "out", "overwrite", "quiet", "json")
# What goes with --resume.
_OF_ANY_RUN = ("resume", "quiet", "json")


def write_configuration(path: Path, command: str, options: DataclassInstance) -> None:
    """Write the options of a command as YAML, by their names; files with their full paths.

    :raises ImportError: If PyYAML is not installed.
    """
    plain = {
        name: str(value.resolve()) if isinstance(value, Path) else value
        for name, value in asdict(options).items()
        if name not in _NOT_WRITTEN and not _is_absent(value)
    }
    text = import_optional("yaml", "cli").safe_dump(plain, sort_keys=False, allow_unicode=True)
    write_whole(path, f"# gpflow-dwp {command} --config {path.name}\n{text}")


def options_as_plain(command: str, options: DataclassInstance) -> dict[str, Any]:
    """Return what files about a run say of its options: all of them, files as they were given."""
    plain = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in asdict(options).items()
    }
    return {"command": command, **plain}


def read_configuration(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Complete arguments by the file of ``--config``, or by the run of ``--resume``.

    :param arguments: What the command line says; it goes before the file of ``--config``.
    :raises UsageError: If the file or run cannot be used.
    """
    named = {argument.field_info.name: argument for argument in arguments}
    given = [name for name, argument in named.items() if argument.tokens]
    if "resume" in given:
        for name in given:
            if name not in _OF_ANY_RUN:
                raise UsageError(
                    f"{named[name].name} cannot go with --resume: a run goes on as it began"
                )
        run = named["resume"].tokens[-1].value
        named["out"].append(Token(keyword="--out", value=run, source="--resume"))
        _read(Run(Path(run)).configuration, commands, arguments)
    elif "config" in given:
        _read(Path(named["config"].tokens[-1].value), commands, arguments)


def _read(path: Path, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Add what a file says to what the command line says."""
    known = {
        name.lstrip("-").replace("-", "_"): argument
        for argument in arguments
        if not argument.children and argument.field_info.name not in ("config", "resume")
        for name in (*argument.names, argument.field_info.name)
    }
    read: list[str] = []
    for name, value in _read_pairs(path):
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            command = " ".join(commands)
            raise UsageError(
                f"{path} has an option {name!r}, which gpflow-dwp {command} has not{hint}"
            )
        argument = known[name]
        if argument.name in read:
            raise UsageError(f"{path} has the option {name!r} twice")
        read.append(argument.name)
        if argument.tokens or _is_absent(value):
            continue
        if isinstance(value, list) and not argument.parameter.consume_multiple:
            raise UsageError(f"{path}: {name!r} must be one value, got {value}")
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            is_set = item is True and argument.is_flag()
            said = {"implicit_value": True} if is_set else {"value": str(item)}
            argument.append(Token(keyword=argument.name, source=str(path), index=index, **said))


def _read_pairs(path: Path) -> list[tuple[str, Any]]:
    """The names and values of a file, also of names that are there twice."""
    yaml = import_optional("yaml", "cli")
    with user_mistakes():
        content = path.read_bytes()
    try:
        values = yaml.safe_load(content)
        if not isinstance(values, dict):
            raise UsageError(f"{path} must hold options by name")
        plain = {str(name): value for name, value in values.items()}
        pairs = yaml.compose(content, yaml.SafeLoader).value
        return [(str(name.value).replace("-", "_"), plain.get(name.value)) for name, _ in pairs]
    # Dates that no calendar has are a ValueError, and deep brackets are a RecursionError.
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is neither YAML nor JSON: {error}") from error


def _is_absent(value: Any) -> bool:
    return value is None or value is False or value in ([], ())
