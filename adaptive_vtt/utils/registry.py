"""Parts by name: built in, of an installed package, or of a file.

A name is that of a built-in part, of an entry point that an installed package declares in the
registry's group (``[project.entry-points."adaptive_vtt.relations"]``), or a target,
``file.py:name`` or ``package.module:name``. Built-in names cannot be taken by packages: what
a SPEC.toml means does not depend on what else is installed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, Signature, getdoc, isclass, isroutine, signature
from pathlib import Path
from typing import Any

from ..errors import InputError, check_known, one_line, unexpected, unknown
from .options import check_options
from .other_code import is_target, load_object


@dataclass(frozen=True)
class Entry:
    """A named part: what it is in one line, and the package and version it comes from.

    ``package``: None for a built-in one. ``note``: why it cannot be used by this name, or "".
    """

    name: str
    about: str
    package: str | None = None
    version: str | None = None
    note: str = ""


class Registry:
    """The parts of one kind.

    ``kind``: in the singular, for messages; ``room``: in the plural, as the group of entry
    points is called after ``adaptive_vtt.``. ``built_in``: name -> the part, or
    "module:attribute", which is imported when asked for. ``members``: what every part has.
    """

    def __init__(
        self, kind: str, room: str, members: Iterable[str], built_in: Mapping[str, object]
    ) -> None:
        self.kind, self.room = kind, room
        self.members, self.built_in = tuple(members), dict(built_in)

    @property
    def group(self) -> str:
        return f"adaptive_vtt.{self.room}"

    def is_code(self, name: str) -> bool:
        """Return whether the name is not a built-in one: to use it, other code is imported."""
        return name not in self.built_in

    def check(self, name: str, where: str = "") -> None:
        """Raise InputError for a name that names nothing; import nothing."""
        if self.is_code(name) and not is_target(name) and name not in self._by_name():
            if name.endswith(".py"):
                place = f"{where}: " if where else ""
                raise InputError(
                    f"{place}{self.kind} {name!r}: expected which of the file's names it is, as in "
                    f"'{name}:Name'"
                )
            raise unknown(self.kind, name, [*self.built_in, *self._by_name()], where)

    def get(self, name: str, base: Path | None = None) -> Any:
        """Return the object of that name, imported; relative files start at ``base`` (default:
        here). Raise InputError for an unknown name, and for code that cannot be imported."""
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
        """Return the part of that name: a class or function is called with the options, and with
        the folder ``base`` where it has a parameter of that name; anything else is taken as it is.

        Raises:
            InputError: The part does not take these options, or none comes of it.
        """
        return self.called(self.get(name, base), name, options, base)

    def check_options(
        self, name: str, options: Iterable[str], base: Path | None = None, also: Iterable[str] = ()
    ) -> None:
        """Raise InputError for an option that neither the part of that name nor ``also`` has."""
        part = self.get(name, base)
        if taken := _signature(part) if _is_called(part) else None:
            self._check_names(taken, name, options, also)

    def called(
        self, part: Any, name: str, options: Mapping[str, Any], base: Path | None = None
    ) -> Any:
        """Return what ``make`` does, of an object that was imported already."""
        if not _is_called(part):
            if options:
                raise InputError(
                    f"{self.kind} {name!r}: expected a class or a function to call with options "
                    f"{sorted(options)}, got {type(part).__name__}"
                )
            return part
        taken = _signature(part)
        if taken is not None:
            self._check_names(taken, name, options)
            if "base" in taken.parameters and "base" not in options:
                options = {**options, "base": base or Path()}
            try:
                taken.bind(**options)
            except TypeError as error:
                raise InputError(f"{self.kind} {name!r}: {one_line(error)}") from None
            check_options(part, options, f"{self.kind} {name!r}")
        return part(**options)

    def checked(self, part: Any, name: str) -> Any:
        """Return ``part`` unchanged. Raise InputError naming the first missing member."""
        for member in self.members:
            if isinstance(part, type) or not hasattr(part, member):
                expected = f"an object with {', '.join(self.members)}"
                got, remedy = f"{type(part).__name__} without {member!r}", "put it into a class"
                if isinstance(part, type):
                    got, remedy = "the class itself", f"make an object of it, {part.__name__}(...)"
                raise unexpected(f"{self.kind} {name!r}", expected, got, remedy)
        return part

    def entries(self) -> list[Entry]:
        """Return every part with a name, built-in ones first; all of them are imported.

        A package's part that cannot be imported, or has a built-in name, has a note about that.
        """
        built_in = [Entry(name, first_line(self.get(name))) for name in self.built_in]
        return [*built_in, *map(self._entry, self._declared())]

    # -- packages ----------------------------------------------------------------------

    def _declared(self) -> list[EntryPoint]:
        return sorted(entry_points(group=self.group), key=lambda point: point.name)

    def _by_name(self) -> dict[str, EntryPoint]:
        """Return what packages declare under names that are not built in."""
        return {point.name: point for point in self._declared() if self.is_code(point.name)}

    def package_of(self, name: str) -> tuple[str, str] | None:
        """Return package and version that declare the name, without importing it, or None."""
        point = self._by_name().get(name)
        return None if point is None else _package(point)

    def _loaded(self, point: EntryPoint) -> Any:
        rivals = {_package(p)[0] for p in self._declared() if p.name == point.name}
        if len(rivals) > 1:
            raise InputError(
                f"{self.kind} {point.name!r}: expected one package that declares it, got "
                f"{', '.join(sorted(rivals))}; name it as 'package.module:name'"
            )
        try:
            return point.load()
        except Exception as error:  # a package may fail in any way at all
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
        self, taken: Signature, name: str, options: Iterable[str], also: Iterable[str] = ()
    ) -> None:
        """Raise InputError for an option that it does not take, naming the nearest that it does."""
        parameters = taken.parameters.values()
        if any(each.kind is Parameter.VAR_KEYWORD for each in parameters):
            return
        known = [*(each.name for each in parameters if each.name != "base"), *also]
        for option in options:
            if option == "base":
                continue
            if not known:
                raise InputError(f"{self.kind} {name!r}: expected no options, got {option!r}")
            check_known("option", option, known, f"{self.kind} {name!r}")


def _is_called(part: object) -> bool:
    """Return whether a part is made by calling what its name names."""
    return isclass(part) or isroutine(part) or isinstance(part, partial)


def _signature(made: Any) -> Signature | None:
    try:
        return signature(made)
    except (TypeError, ValueError):  # of some that are written in C there is none
        return None


def first_line(part: Any) -> str:
    """Return the ``about`` of an object, or the first line of its docstring without "Return"."""
    own = vars(part).get("about", "") if hasattr(part, "__dict__") else ""
    text = own if isinstance(own, str) and own else getdoc(part) or ""
    line = text.strip().partition("\n")[0]
    rest = line.removeprefix("Return ")
    return line if rest == line else rest[:1].upper() + rest[1:]


def _package(point: EntryPoint) -> tuple[str, str]:
    return ("unknown", "") if point.dist is None else (point.dist.name, point.dist.version)
