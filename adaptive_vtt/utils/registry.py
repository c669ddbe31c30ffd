"""Registries of parts by name: built-in ones, those of installed packages, and those of files.

A name is that of a built-in part; that of an entry point which an installed package declares in the
registry's group (``[project.entry-points."adaptive_vtt.relations"]``); or a target,
``file.py:name`` or ``package.module:name``. A package cannot replace a built-in part, so that the
meaning of a SPEC.toml does not depend on installed packages.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, Signature, getdoc, isclass, isroutine, signature
from pathlib import Path
from typing import Any

from ..errors import InputError, check_known, one_line, unexpected, unknown
from .options import check_options
from .other_code import defined_at, is_target, load_object, naming


@dataclass(frozen=True)
class Entry:
    """A named part.

    Attributes:
        name: Its name.
        about: Its description in one line.
        package: The package that declares it; None: it is built in.
        version: The version of that package.
        note: The reason why it cannot be used by this name, "" if it can.
    """

    name: str
    about: str
    package: str | None = None
    version: str | None = None
    note: str = ""


class Registry:
    """The parts of one kind.

    Args:
        kind: Name of the kind in the singular, for errors.
        room: Name in the plural; the group of entry points is "adaptive_vtt." and this.
        members: Attributes that each part must have, methods with their positional arguments:
            "weights(candidates, belief)". One that a part may lack ends in "?".
        built_in: Name -> part, or "module:attribute", which is imported on first use.
    """

    function = "put it into a class"
    """Remedy for a function that is no part."""

    def __init__(
        self, kind: str, room: str, members: Sequence[str], built_in: Mapping[str, object]
    ) -> None:
        self.kind, self.room = kind, room
        self.members, self.built_in = [m for m in members if m[-1] != "?"], dict(built_in)
        self._methods = [member.rstrip("?)") for member in members if "(" in member]

    @property
    def group(self) -> str:
        return f"adaptive_vtt.{self.room}"

    def is_code(self, name: str) -> bool:
        """Return whether a name is not built in, so that its use imports other people's code."""
        return name not in self.built_in

    def check(self, name: str, where: str = "") -> None:
        """Raise InputError for an unknown name. Nothing is imported."""
        if self.is_code(name) and not is_target(name) and name not in self._by_name():
            if name.endswith(".py"):
                expected = f"which of the file's names it is, as in '{name}:Name'"
                raise unexpected(where or self.kind, expected, repr(name))
            raise unknown(self.kind, name, [*self.built_in, *self._by_name()], where)

    def get(self, name: str, base: Path | None = None) -> Any:
        """Import and return the object of a name.

        Args:
            name: The name.
            base: Folder of relative files. Default None: the working folder.

        Raises:
            InputError: The name is unknown, or its code cannot be imported.
        """
        if is_target(name) and self.is_code(name):
            return load_object(name, base, self.kind)
        self.check(name)
        part = self.built_in.get(name)
        if part is None:
            return self._loaded(self._by_name()[name])
        if isinstance(part, str):
            module, _, attribute = part.partition(":")
            return getattr(import_module(module), attribute)
        return part

    def make(self, name: str, options: Mapping[str, Any], base: Path | None = None) -> Any:
        """Return the part of a name: the result of a class or function, and another object itself.

        Args:
            name: The name.
            options: Arguments of the class or function.
            base: Folder of relative files, which is passed on to a parameter of this name.

        Raises:
            InputError: The part does not have these options, or cannot be made.
        """
        return self.called(self.get(name, base), name, options, base)

    def check_options(
        self, name: str, options: Iterable[str], base: Path | None = None, also: Iterable[str] = ()
    ) -> None:
        """Raise InputError for an option that is neither one of the named part nor in ``also``."""
        part = self.get(name, base)
        if parameters := _signature(part) if _is_called(part) else None:
            self._check_names(parameters, name, options, also)

    def called(
        self, part: Any, name: str, options: Mapping[str, Any], base: Path | None = None
    ) -> Any:
        """Return the part of an object that was imported already; see ``make``."""
        if not _is_called(part):
            if options:
                expected = f"a class or a function to call with options {sorted(options)}"
                raise unexpected(f"{self.kind} {name!r}", expected, type(part).__name__)
            return part
        parameters = _signature(part)
        if parameters is not None:
            self._check_names(parameters, name, options)
            if "base" in parameters.parameters and "base" not in options:
                options = {**options, "base": base or Path()}
            try:
                parameters.bind(**options)
            except TypeError as error:
                why = one_line(error)
                if isroutine(part) and self._methods:
                    got = f"the function {part.__name__}{parameters}; {self.function}"
                    why = f"expected a class with {', '.join(self.members)}, got {got}"
                raise InputError(f"{self.kind} {name!r}{defined_at(part)}: {why}") from None
            check_options(part, options, f"{self.kind} {name!r}")
        with naming(self.kind, getattr(part, "func", part), "__init__"):  # inside a partial
            return part(**options)

    def checked(self, part: Any, name: str) -> Any:
        """Return a part unchanged.

        Raises:
            InputError: It lacks a member, or a method takes other arguments.
        """
        for member in self.members:
            attribute = member.partition("(")[0]
            if isinstance(part, type) or not hasattr(part, attribute):
                expected = f"an object with {', '.join(self.members)}"
                got, remedy = f"{type(part).__name__} without {attribute!r}", self.function
                if self.kind in ("model", "oracle", "relation"):
                    base = f"adaptive_vtt.{self.room}.{self.kind.title()}Defaults"
                    remedy = f"let its class inherit from {base}"
                if isinstance(part, type):
                    got, remedy = "the class itself", f"make an object of it, {part.__name__}(...)"
                remedy = self.function if isroutine(part) else remedy
                raise unexpected(f"{self.kind} {name!r}", expected, got, remedy)
        for method in self._methods:
            self.check_method(part, name, method)
        return part

    def check_method(self, part: Any, name: str, expected: str) -> None:
        """Raise InputError if a part has a method, "weights(candidates, belief", with others."""
        attribute, _, arguments = expected.partition("(")
        method: Any = getattr(part, attribute, None)
        try:
            if callable(method):
                signature(method).bind(*arguments.split(", "))
        except TypeError:
            got = f"{attribute}{signature(method)}{defined_at(method)}"
            raise unexpected(f"{self.kind} {name!r}", f"{expected})", got) from None

    def entries(self) -> list[Entry]:
        """Import and return all parts with a name, built-in ones first.

        A package's part that cannot be imported, or has a built-in name, has a note about that.
        """
        built_in = [Entry(name, first_line(self.get(name))) for name in self.built_in]
        return [*built_in, *map(self._entry, self._declared())]

    # -- packages ----------------------------------------------------------------------

    def _declared(self) -> list[EntryPoint]:
        return sorted(entry_points(group=self.group), key=lambda point: point.name)

    def _by_name(self) -> dict[str, EntryPoint]:
        """Return the entry points of packages by name, without those of built-in names."""
        return {point.name: point for point in self._declared() if self.is_code(point.name)}

    def package_of(self, name: str) -> tuple[str, str] | None:
        """Return the package and version that declare a name, None without one. Nothing is
        imported."""
        point = self._by_name().get(name)
        return None if point is None else _package(point)

    def _loaded(self, point: EntryPoint) -> Any:
        rivals = {_package(p)[0] for p in self._declared() if p.name == point.name}
        if len(rivals) > 1:
            where, expected = f"{self.kind} {point.name!r}", "one package that declares it"
            remedy = "name it as 'package.module:name'"
            raise unexpected(where, expected, ", ".join(sorted(rivals)), remedy)
        try:
            return point.load()
        except Exception as error:  # a package may fail in any manner
            raise InputError(
                f"{self.kind} {point.name!r}: package {_package(point)[0]!r} cannot be "
                f"imported: {type(error).__name__}: {one_line(error)}"
            ) from error

    def _entry(self, point: EntryPoint) -> Entry:
        about = note = ""
        if not self.is_code(point.name):
            note = f"not reached: {point.name!r} is built in; use {point.value!r}"
        else:
            try:
                about = first_line(self._loaded(point))
            except InputError as error:
                note = str(error)
        return Entry(point.name, about, *_package(point), note)

    def _check_names(
        self, part: Signature, name: str, options: Iterable[str], also: Iterable[str] = ()
    ) -> None:
        """Raise InputError for an option that a part does not have, and name the nearest one."""
        parameters = part.parameters.values()
        if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
            return
        known = [*(p.name for p in parameters if p.name != "base"), *also]
        for option in options:
            if option == "base":
                continue
            if not known:
                raise InputError(f"{self.kind} {name!r}: expected no options, got {option!r}")
            check_known("option", option, known, f"{self.kind} {name!r}")


def _is_called(part: object) -> bool:
    """Return whether an object is called to make the part."""
    return isclass(part) or isroutine(part) or isinstance(part, partial)


def _signature(made: Any) -> Signature | None:
    try:
        return signature(made)
    except (TypeError, ValueError):  # some functions in C have none
        return None


def first_line(part: Any) -> str:
    """Return the ``about`` of an object, or the first line of its docstring without "Return"."""
    about = vars(part).get("about", "") if hasattr(part, "__dict__") else ""
    text = about if isinstance(about, str) and about else getdoc(part) or ""
    line = text.strip().partition("\n")[0]
    noun = line.removeprefix("Return ")
    return line if noun == line else noun[:1].upper() + noun[1:]


def _package(point: EntryPoint) -> tuple[str, str]:
    return ("unknown", "") if point.dist is None else (point.dist.name, point.dist.version)
