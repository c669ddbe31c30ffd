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

from ..errors import InputError, check_known, one_line, unknown
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
        self.kind = kind
        self.room = room
        self.members = tuple(members)
        self.built_in = dict(built_in)

    @property
    def group(self) -> str:
        return f"adaptive_vtt.{self.room}"

    def is_code(self, name: str) -> bool:
        """Whether the name is not a built-in one: to use it, other people's code is imported."""
        return name not in self.built_in

    def check(self, name: str, where: str = "") -> None:
        """Raises InputError for a name that names nothing; imports nothing."""
        if self.is_code(name) and not is_target(name) and name not in self._by_name():
            if name.endswith(".py"):
                place = f"{where}: " if where else ""
                raise InputError(
                    f"{place}{self.kind} {name!r}: expected which of the file's names it is, as in "
                    f"'{name}:Name'"
                )
            raise unknown(self.kind, name, [*self.built_in, *self._by_name()], where)

    def get(self, name: str, base: Path | None = None) -> Any:
        """The object of that name, imported; relative files start at ``base`` (default: here).

        Raises InputError for an unknown name, and for code that cannot be imported.
        """
        if not self.is_code(name):
            return _imported(self.built_in[name])
        if is_target(name):
            return load_object(name, base, self.kind)
        self.check(name)
        return self._loaded(self._by_name()[name])

    def make(self, name: str, options: Mapping[str, Any], base: Path | None = None) -> Any:
        """The part of that name: a class or function is called with the options, and with the
        folder ``base`` where it has a parameter of that name; anything else is taken as it is.

        Raises InputError for options that it does not take, and where no part comes of it.
        """
        return self.called(self.get(name, base), name, options, base)

    def check_options(
        self, name: str, options: Iterable[str], base: Path | None = None, also: Iterable[str] = ()
    ) -> None:
        """Raises InputError for an option that neither the part of that name nor ``also`` has."""
        found = self.get(name, base)
        if taken := _signature(found) if _is_called(found) else None:
            self._check_names(taken, name, options, also)

    def called(
        self, found: Any, name: str, options: Mapping[str, Any], base: Path | None = None
    ) -> Any:
        """``make``, of an object that was found already."""
        if _is_called(found):
            found = found(**self._fitting(found, name, options, base))
        elif options:
            raise InputError(
                f"{self.kind} {name!r}: expected a class or a function to call with options "
                f"{sorted(options)}, got {type(found).__name__}"
            )
        return found

    def checked(self, found: Any, name: str) -> Any:
        """``found`` again; raises InputError naming the first member that it lacks."""
        for member in self.members:
            if not hasattr(found, member):
                article = "an" if self.kind[0] in "aeiou" else "a"
                raise InputError(
                    f"{self.kind} {name!r}: expected {article} {self.kind} (with "
                    f"{', '.join(self.members)}), got {type(found).__name__} without {member!r}"
                )
        return found

    def entries(self) -> list[Entry]:
        """Every part with a name, built-in ones first; imports all of them.

        A package's part that cannot be imported, or goes by a built-in name, is there with a
        note that says so.
        """
        built_in = [Entry(name, first_line(self.get(name))) for name in self.built_in]
        return [*built_in, *map(self._entry, self._declared())]

    # -- packages ----------------------------------------------------------------------

    def _declared(self) -> list[EntryPoint]:
        return sorted(entry_points(group=self.group), key=lambda point: point.name)

    def _by_name(self) -> dict[str, EntryPoint]:
        """What packages declare under names of their own."""
        return {point.name: point for point in self._declared() if self.is_code(point.name)}

    def package_of(self, name: str) -> tuple[str, str] | None:
        """Package and version that declare the name, without importing it; None for none."""
        point = self._by_name().get(name)
        return None if point is None else _package(point)

    def _loaded(self, point: EntryPoint) -> Any:
        rivals = {_package(p)[0] for p in self._declared() if p.name == point.name}
        if len(rivals) > 1:
            raise InputError(
                f"{self.kind} {point.name!r}: expected one package that declares it, found "
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
        package, version = _package(point)
        if not self.is_code(point.name):
            note = f"not reached: {point.name!r} is built in; use {point.value!r}"
            return Entry(point.name, "", package, version, note)
        try:
            about = first_line(self._loaded(point))
        except InputError as error:
            return Entry(point.name, "", package, version, str(error))
        return Entry(point.name, about, package, version)

    def _fitting(
        self, made: Any, name: str, options: Mapping[str, Any], base: Path | None
    ) -> dict[str, Any]:
        """The options as arguments; raises InputError for one that is missing, not taken, or out of
        the range that its annotation tells."""
        taken = _signature(made)
        if taken is None:
            return dict(options)
        self._check_names(taken, name, options)
        if "base" in taken.parameters and "base" not in options:
            options = {**options, "base": base or Path()}
        try:
            taken.bind(**options)
        except TypeError as error:
            raise InputError(f"{self.kind} {name!r}: {one_line(error)}") from None
        check_options(made, options, f"{self.kind} {name!r}")
        return dict(options)

    def _check_names(
        self, taken: Signature, name: str, options: Iterable[str], also: Iterable[str] = ()
    ) -> None:
        """Raises InputError for an option that it does not take, naming the nearest of those that
        it does."""
        parameters = taken.parameters.values()
        if any(each.kind is Parameter.VAR_KEYWORD for each in parameters):
            return
        known = [*(each.name for each in parameters if each.name != "base"), *also]
        for option in options:
            if not known and option != "base":
                raise InputError(f"{self.kind} {name!r}: expected no options, got {option!r}")
            if option != "base":
                check_known("option", option, known, f"{self.kind} {name!r}")


def _is_called(found: object) -> bool:
    """Whether a part is made by calling what its name names."""
    return isclass(found) or isroutine(found) or isinstance(found, partial)


def _signature(made: Any) -> Signature | None:
    try:
        return signature(made)
    except (TypeError, ValueError):  # of some that are written in C there is none
        return None


def _imported(found: object) -> Any:
    if not isinstance(found, str):
        return found
    module, _, attribute = found.partition(":")
    return getattr(import_module(module), attribute)


def first_line(found: Any) -> str:
    """What an object says of itself, in one line."""
    own = vars(found).get("about", "") if hasattr(found, "__dict__") else ""
    text = own if isinstance(own, str) and own else getdoc(found) or ""
    return text.strip().partition("\n")[0]


def _package(point: EntryPoint) -> tuple[str, str]:
    found = point.dist
    return ("unknown", "") if found is None else (found.name, found.version)
