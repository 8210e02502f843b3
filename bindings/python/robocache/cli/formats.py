"""``robocache formats``: the formats that are read, and what each of them needs."""

import dataclasses
import importlib.metadata
import importlib.util
from typing import Annotated, Any, Optional

import typer

from ..data import Format
from ..data._formats import registry, third_party
from . import _display as show
from ._common import AsJson, Failure, no_such


def formats(
    name: Annotated[
        Optional[str],
        typer.Argument(
            help="Show one format: its name, such as ros2.", show_default=False, metavar="[NAME]"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the formats that are read, and the packages that they need.

    The order is the order in which they are tried. With a name, show what is read of that format,
    what is not read and why, and a line of code. Readers of other packages are listed last.
    """
    readers = third_party.readers()
    found = [_facts(each, "robocache") for each in registry.descriptions()]
    found += [_facts(each, reader.package) for reader in readers for each in reader.FORMATS]
    failed = [
        {"reader": reader.name, "package": reader.package, "reason": reader.fault}
        for reader in readers
        if reader.fault
    ]
    if name is not None:
        known = list(dict.fromkeys(facts["name"] for facts in found))
        found = [facts for facts in found if facts["name"] == name.lower()]
        if not found:
            raise Failure(no_such(name, "format", name, known, "Formats"))
    if as_json:
        show.print_json({"formats": found, "failed": failed})
        return
    out = show.Page()
    if name is not None:
        for facts in found:
            _print_one(out, facts)
        return
    rows = [_row(facts) for facts in found]
    out.print(show.table(["name", "format", "files", "package", "installed"], rows, 4))
    missing = sorted({facts["extra"] for facts in found if not facts["installed"]} - {""})
    if missing:
        out.print()
        out.print(f"to install what is missing: {_pip(','.join(missing))}")
    if failed:
        out.print()
        lines = (
            f"reader {each['reader']} of {each['package']} {each['reason']}" for each in failed
        )
        out.print(show.listed(("warning", show.COLOURS["warning"], line) for line in lines))


def _facts(described: Format, provider: str) -> dict[str, Any]:
    facts = dataclasses.asdict(described)
    packages = {name: _version(name) for name in filter(None, described.package.split(", "))}
    installed = all(version is not None for version in packages.values())
    return {**facts, "versions": packages, "installed": installed, "provider": provider}


def _version(package: str) -> Optional[str]:
    """Return the version of an installed package, "" if it is not known; None: not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        found = importlib.util.find_spec(package.replace("-", "_"))
        return None if found is None else ""


def _pip(extras: str) -> str:
    return f"pip install 'robocache[{extras}]'"


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    packages = facts["package"] if facts["provider"] == "robocache" else facts["provider"]
    installed = "yes" if facts["installed"] else "no"
    return facts["name"], facts["title"], facts["files"], packages or "-", installed


def _print_one(out: show.Page, facts: dict[str, Any]) -> None:
    out.print(f"{facts['name']}: {facts['title']}", style="bold")
    needs = ", ".join(f"{name} {version or ''}".strip() for name, version in _known(facts))
    if not facts["installed"]:
        missing = ", ".join(name for name, version in facts["versions"].items() if version is None)
        extra = f": {_pip(facts['extra'])}" if facts["extra"] else ""
        needs = f"{missing}, not installed{extra}"
    lines = {
        "files": facts["files"],
        "needs": needs or "no other package",
        "reader": "" if facts["provider"] == "robocache" else facts["provider"],
        "read": facts["reads"],
        "not read": facts["refuses"],
        "example": facts["example"],
    }
    out.print(show.listed((mark, "", text) for mark, text in lines.items() if text))


def _known(facts: dict[str, Any]) -> list[tuple[str, Optional[str]]]:
    return list(facts["versions"].items())
