"""Check the statements about packages: bills of materials and the statement of provenance.

Bills are checked against the schemas of CycloneDX and SPDX by those projects' own libraries, if
installed (requirements/packages.txt), and against our own requirements.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import pathlib
import re

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def cyclonedx_schema(path: pathlib.Path) -> list[str]:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(path.read_text())
    return [] if error is None else [f"{path.name}: {error}"]


def spdx_schema(path: pathlib.Path) -> list[str]:
    from spdx_tools.spdx.parser.error import SPDXParsingError
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    try:
        document = parse_file(str(path))
    except SPDXParsingError as error:
        return [f"{path.name}: {message}" for message in error.get_messages()]
    return [
        f"{path.name}: {message.validation_message}"
        for message in validate_full_spdx_document(document)
    ]


def schemas(folder: pathlib.Path) -> tuple[list[str], list[str]]:
    """Return the problems, and the libraries that are missing."""
    found, missing = [], []
    for pattern, library, check in (
        ("*.cdx.json", "cyclonedx", cyclonedx_schema),
        ("*.spdx.json", "spdx_tools", spdx_schema),
    ):
        if importlib.util.find_spec(library) is None:
            missing.append(library)
            continue
        for path in sorted(folder.glob(pattern)):
            found += check(path)
    return found, missing


def check_cyclonedx(name: str, bill: dict) -> list[str]:
    """Check the requirements that are not in the schema."""
    found = []

    def require(condition: object, what: str) -> None:
        if not condition:
            found.append(f"{name}: {what}")

    require(bill.get("bomFormat") == "CycloneDX", "is not CycloneDX")
    require(bill.get("specVersion") == "1.5", "is not version 1.5")
    stamp = bill.get("metadata", {}).get("timestamp", "")
    require(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stamp), "has no time")
    root = bill.get("metadata", {}).get("component", {})
    components = [root, *bill.get("components", [])]
    references = [component.get("bom-ref") for component in components]
    require(len(set(references)) == len(references), "names a component twice")
    for component in components:
        what = component.get("name", "a component")
        require(component.get("type") in ("library", "application", "framework"), f"{what}: type")
        require(component.get("name") and component.get("version"), f"{what}: name or version")
        licenses = component.get("licenses") or []
        require(
            licenses and all(one.get("expression") or one.get("license") for one in licenses),
            f"{what}: has no licence",
        )
        for digest in component.get("hashes", []):
            require(re.fullmatch(r"[0-9a-f]{64}", digest.get("content", "")), f"{what}: hash")
    needs = {entry["ref"]: entry.get("dependsOn", []) for entry in bill.get("dependencies", [])}
    require(set(needs) == set(references), "its dependencies do not match its components")
    require(set(needs.get(root.get("bom-ref"), [])) == set(references[1:]), "omits some")
    return found


def contents_of(bill: dict) -> set[tuple]:
    """Return (name, version, SHA-256 or none) of the contents of a bill, in either form."""
    if "bomFormat" in bill:
        parts = [bill["metadata"]["component"], *bill["components"]]
        return {
            (p["name"], p["version"], *(h["content"] for h in p.get("hashes", []))) for p in parts
        }
    return {
        (p["name"], p["versionInfo"], *(c["checksumValue"] for c in p.get("checksums", [])))
        for p in bill["packages"]
    }


def check_bills(folder: pathlib.Path) -> tuple[list[str], set[str]]:
    """Return the problems, and the sums of the libraries that have bills."""
    found = []
    libraries = set()
    bills = sorted(folder.glob("*.cdx.json"))
    if not bills:
        found.append("no bill of materials")
    for path in bills:
        bill = json.loads(path.read_text())
        wrong = check_cyclonedx(path.name, bill)
        found += wrong
        if wrong:
            continue
        libraries |= {digest["content"] for digest in bill["metadata"]["component"]["hashes"]}
        other = path.with_name(path.name.replace(".cdx.json", ".spdx.json"))
        if not other.exists():
            found.append(f"{other.name}: is missing")
        elif contents_of(json.loads(other.read_text())) != contents_of(bill):
            found.append(f"{other.name}: does not list the same as {path.name}")
    return found, libraries


def check_provenance(folder: pathlib.Path) -> list[str]:
    paths = list(folder.glob("*.intoto.json"))
    if len(paths) != 1:
        return [f"{len(paths)} statements of provenance, expected one"]
    (path,) = paths
    statement = json.loads(path.read_text())
    found = []

    def require(condition: object, what: str) -> None:
        if not condition:
            found.append(f"{path.name}: {what}")

    require(statement.get("_type") == STATEMENT, "is not an in-toto statement of version 1")
    require(statement.get("predicateType") == PREDICATE, "is not SLSA v1 provenance")
    listed = {one["name"]: one["digest"].get("sha256") for one in statement.get("subject", [])}
    there = {
        one.name: sha256(one.read_bytes())
        for one in folder.iterdir()
        if one != path and not one.name.startswith("SHA256SUMS")
    }
    for name in sorted(set(listed) | set(there)):
        require(name in listed, f"does not list {name}")
        require(name in there, f"lists {name}, which is missing")
        require(listed.get(name) == there.get(name), f"{name} has another sum")

    predicate = statement.get("predicate", {})
    definition = predicate.get("buildDefinition", {})
    uri = re.compile(r"[a-z][a-z0-9+.-]*:.+")
    require(uri.fullmatch(definition.get("buildType", "")), "has no build type")
    require(isinstance(definition.get("externalParameters"), dict), "has no parameters")
    builder = predicate.get("runDetails", {}).get("builder", {})
    require(uri.fullmatch(builder.get("id", "")), "names no builder")
    materials = definition.get("resolvedDependencies", [])
    sources = [one for one in materials if "gitCommit" in one.get("digest", {})]
    require(len(sources) == 1, f"{len(sources)} source commits, expected one")
    for one in sources:
        commit = one["digest"]["gitCommit"]
        require(re.fullmatch(r"[0-9a-f]{40}([0-9a-f]{24})?", commit), "the commit is invalid")
        changed = one.get("annotations", {}).get("changedFiles", [])
        require(not changed, f"was made from changed files: {', '.join(changed)}")
    for one in materials:
        require(one.get("uri") or one.get("digest"), "a material has neither name nor sum")
    require(any(one.get("uri", "").startswith("pkg:") for one in materials), "lists no tools")
    return found
