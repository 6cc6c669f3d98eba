"""Options in a file: written by every run, and read in place of a command line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gpflow_dwp.cli.errors import UsageError, user_mistakes
from gpflow_dwp.cli.run_directory import read_run
from gpflow_dwp.cli.unfinished import UnfinishedRun
from gpflow_dwp.files import write_whole
from gpflow_dwp.optional import import_optional

__all__ = ["complete_options", "parse_options", "write_configuration"]

# What a run is not made of: where it goes, and what is shown of it.
_NOT_WRITTEN = ("command", "config", "resume", "out", "overwrite", "quiet", "json", "retry_failed")


def write_configuration(path: Path, options: Mapping[str, Any]) -> None:
    """Write the options of a command as YAML, by their names; files with their full paths.

    :param path: The file.
    :param options: What the command was given, defaults included.
    :raises ImportError: If PyYAML is not installed.
    """
    fields = {
        name: _as_plain(value)
        for name, value in options.items()
        if name not in _NOT_WRITTEN and not _is_absent(value)
    }
    text = import_optional("yaml", "cli").safe_dump(fields, sort_keys=False, allow_unicode=True)
    write_whole(path, f"# gpflow-dwp {options['command']} --config {path.name}\n{text}")


def parse_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Return what arguments say; with ``--config``, options that are required may be missing.

    It ends the process where they say nothing that can be used, or name a list twice, of which
    argparse would keep the last alone.

    :param parser: Parses all arguments.
    :param arguments: The arguments.
    """
    required: list[argparse.Action] = []
    if any(argument.partition("=")[0] == "--config" for argument in arguments):
        for command in _commands(parser).values():
            required.extend(action for action in command._actions if action.required)
    for action in required:
        action.required = False
    try:
        options = parser.parse_args(arguments)
    finally:
        for action in required:
            action.required = True
    _refuse_repeated_lists(parser, options, arguments)
    return options


def complete_options(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    arguments: Sequence[str],
) -> argparse.Namespace:
    """Return the options with those of ``--config`` or ``--resume``, if one of them is given.

    :param parser: Parses all arguments.
    :param options: What the arguments say by themselves.
    :param arguments: The arguments: the command, and what follows it.
    :raises UsageError: If the file or run cannot be used.
    """
    given = vars(options)
    command = _commands(parser)[options.command]
    if given.get("resume") is not None:
        kept = ("command", "resume", "quiet", "json")
        for action in command._actions:
            own = action.dest in given and action.dest not in kept
            if own and given[action.dest] != action.default:
                raise UsageError(
                    f"{_name(action)} cannot go with --resume: a run goes on as it began"
                )
        with read_run(options.resume) as folder:
            fields = _read(UnfinishedRun.find(folder).configuration, command)
        resumed = _parse(parser, command, options.command, fields)
        vars(resumed).update({name: given[name] for name in kept if name in given})
        resumed.out = options.resume
        return resumed
    if given.get("config") is None:
        return options
    fields = _read(options.config, command)
    for action in command._actions:
        # Where the command line names a positional argument, the file's has to go.
        if not action.option_strings and given[action.dest] is not None:
            fields.pop(action.dest, None)
    # The last argument of the file's ends a list; what comes after it is the command line.
    rest = [f"--config={options.config}", *arguments[1:]]
    return _parse(parser, command, options.command, fields, rest)


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (commands,) = _subparsers(parser)
    return dict(commands.choices)


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[Any]]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _refuse_repeated_lists(
    parser: argparse.ArgumentParser, options: argparse.Namespace, arguments: Sequence[str]
) -> None:
    for commands in _subparsers(parser):
        command = commands.choices[getattr(options, commands.dest)]
        for action in command._actions:
            names = [argument.partition("=")[0] for argument in arguments]
            times = sum(name in action.option_strings for name in names)
            if action.nargs == "+" and times > 1:
                command.error(f"{_name(action)} must come once, before all its values, got {times}")
        _refuse_repeated_lists(command, options, arguments)


def _read(path: Path, command: argparse.ArgumentParser) -> dict[str, Any]:
    given = _read_pairs(path)
    names = {
        string.lstrip("-").replace("-", "_"): action.dest
        for action in command._actions
        for string in (*action.option_strings, action.dest)
    }
    known = [name for name in names if len(name) > 1 and name not in ("help", "config", "debug")]
    fields: dict[str, Any] = {}
    for name, value in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UsageError(f"{path} has an option {name!r}, which {command.prog} has not{hint}")
        if names[name] in fields:
            raise UsageError(f"{path} has the option {name!r} twice")
        fields[names[name]] = value
    return fields


def _read_pairs(path: Path) -> list[tuple[str, Any]]:
    """The names and values of a file, also of names that are there twice."""
    yaml = import_optional("yaml", "cli")
    with user_mistakes():
        content = path.read_bytes()
    try:
        node = yaml.compose(content, yaml.SafeLoader)
        values = yaml.safe_load(content)
        if not isinstance(values, dict):
            raise UsageError(f"{path} must hold options by name")
        plain = {str(name): value for name, value in values.items()}
        names = [str(name.value) for name, _ in node.value]
        return [(name.replace("-", "_"), plain.get(name)) for name in names]
    # Dates that no calendar has are a ValueError, and deep brackets are a RecursionError.
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is neither YAML nor JSON: {error}") from error


def _parse(
    parser: argparse.ArgumentParser,
    command: argparse.ArgumentParser,
    name: str,
    fields: Mapping[str, Any],
    arguments: Sequence[str] = (),
) -> argparse.Namespace:
    """The options of a command by name, with those of a file before arguments."""
    # A list that holds what looks like an option cannot be said in arguments.
    unspeakable = {
        action.dest: list(map(str, fields[action.dest]))
        for action in command._actions
        if action.type is None and _looks_like_options(fields.get(action.dest))
    }
    others = {key: value for key, value in fields.items() if key not in unspeakable}
    options = parser.parse_args([name, *_as_arguments(others, command), *arguments])
    for key, values in unspeakable.items():
        if getattr(options, key) == command.get_default(key):
            setattr(options, key, values)
    return options


def _looks_like_options(value: Any) -> bool:
    return isinstance(value, list) and any(str(item).startswith("-") for item in value)


def _as_arguments(fields: Mapping[str, Any], command: argparse.ArgumentParser) -> Iterable[str]:
    """The arguments that give these values, positional ones first."""
    positional: list[str] = []
    named: list[str] = []
    for action in command._actions:
        value = fields.get(action.dest)
        if _is_absent(value):
            continue
        if value is True and action.nargs == 0:
            named.append(_name(action))
        elif not action.option_strings:
            positional.extend(map(str, value if isinstance(value, list) else [value]))
        elif isinstance(value, list):
            named.extend([_name(action), *map(str, value)])
        else:
            named.append(f"{_name(action)}={value}")
    return [*positional, *named]


def _as_plain(value: Any) -> Any:
    """A value as the command line has it, for what YAML has no form for."""
    if isinstance(value, Path):
        return str(value.resolve())
    if isinstance(value, list):
        return [_as_plain(item) for item in value]
    if isinstance(value, tuple) and isinstance(value[0], str):
        return f"{value[0]}={json.dumps(value[1])}"
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _is_absent(value: Any) -> bool:
    return value is None or value is False or value == []


def _name(action: argparse.Action) -> str:
    return next((name for name in action.option_strings if name.startswith("--")), action.dest)
