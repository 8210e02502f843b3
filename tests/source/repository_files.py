#!/usr/bin/env python3
"""Check the files that a repository host reads: they parse, and the files that they name exist.

python tests/source/repository_files.py    in the root of the repository
"""

from __future__ import annotations

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

try:
    import yaml
except ModuleNotFoundError:
    sys.exit("SKIPPED: no PyYAML")
if not pathlib.Path(".github").is_dir():
    sys.exit("SKIPPED: a source distribution does not have these files")

# The attributes that a field of a form may have, and the required ones.
ATTRIBUTES = {
    "markdown": ({"value"}, {"value"}),
    "input": ({"label", "description", "placeholder", "value"}, {"label"}),
    "textarea": ({"label", "description", "placeholder", "value", "render"}, {"label"}),
}
SYSTEMS = {
    "github-actions": [".github/workflows/*.yml"],
    "pip": ["requirements*.txt", "*.txt"],
    "docker": ["Dockerfile"],
}


def load(path: str) -> Any:
    return yaml.safe_load(pathlib.Path(path).read_text())


def forms() -> list[str]:
    found = []
    paths = [*pathlib.Path(".github/ISSUE_TEMPLATE").glob("*.yml")]
    for path in paths:
        if path.name == "config.yml":
            continue
        form = load(str(path))
        if not {"name", "description", "body"} <= set(form):
            found.append(f"{path}: a form needs name, description and body")
        ids = [field.get("id") for field in form["body"] if field["type"] != "markdown"]
        if None in ids or len(set(ids)) != len(ids):
            found.append(f"{path}: ids are {ids}, expected one for each field")
        for field in form["body"]:
            known, needed = ATTRIBUTES.get(field["type"], (set(), {"a type that is known"}))
            attributes = set(field["attributes"])
            if not needed <= attributes <= known:
                found.append(
                    f"{path}: {field['type']} has {sorted(attributes)}, needs {sorted(needed)}"
                )
    if not any("robocache inspect --json" in path.read_text() for path in paths):
        found.append(".github/ISSUE_TEMPLATE: no form asks for robocache inspect --json")
    return found


def workflows() -> list[str]:
    found = []
    for path in pathlib.Path(".github/workflows").glob("*.yml"):
        for job in load(str(path))["jobs"].values():
            commands = [step["run"] for step in job["steps"] if "run" in step]
            if not any(".ci/run" in command for command in commands):
                found.append(f"{path}: no step runs .ci/run")
    return found or ([] if pathlib.Path(".ci/run").is_file() else [".ci/run: is missing"])


def dependabot() -> list[str]:
    found = []
    for update in load(".github/dependabot.yml")["updates"]:
        for folder in update.get("directories", [update.get("directory")]):
            place = pathlib.Path(folder.lstrip("/") or ".")
            patterns = SYSTEMS[update["package-ecosystem"]]
            if not any([*place.glob(pattern)] for pattern in patterns):
                found.append(f".github/dependabot.yml: {folder} has none of {patterns}")
    return found


def owners() -> list[str]:
    found = []
    tracked = subprocess.check_output(["git", "ls-files"], text=True).splitlines()
    guide = pathlib.Path("CONTRIBUTING.md").read_text()
    for line in pathlib.Path(".github/CODEOWNERS").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern, *teams = line.split()
        if not any(fnmatch.fnmatch(f"/{path}", f"*{pattern}*") for path in tracked):
            found.append(f".github/CODEOWNERS: no file is {pattern}")
        found += [f"CONTRIBUTING.md: does not explain {t}" for t in teams if f"`{t}`" not in guide]
    return found


def hooks() -> list[str]:
    path = ".pre-commit-config.yaml"
    found = []
    lint = pathlib.Path("scripts/lint.sh").read_text()
    for repository in load(path)["repos"]:
        for hook in repository["hooks"]:
            program = hook["entry"].split()[0]
            known = pathlib.Path(program).is_file() or program == "clang-format"
            if not known and f"{program}) " not in lint:
                found.append(f"{path}: {program} is neither a file nor a part of scripts/lint.sh")
            if pattern := hook.get("exclude"):
                re.compile(pattern)
    return found


def container() -> list[str]:
    folder = pathlib.Path(".devcontainer")
    config = json.loads((folder / "devcontainer.json").read_text())
    image = folder / config["build"]["dockerfile"]
    copied = re.findall(r"^COPY (\S+) ", image.read_text(), re.M)
    context = folder / config["build"]["context"]
    found = [f"{image}: {name} is not there" for name in copied if not (context / name).exists()]
    groups = re.search(r"for group in ([a-z0-9 ]+);", image.read_text())
    script = pathlib.Path("scripts/install_deps.sh").read_text()
    for group in groups[1].split() if groups else ["no"]:
        if not re.search(rf"^  {group}\)", script, re.M):
            found.append(f"{image}: scripts/install_deps.sh has no group {group}")
    return found


def prerequisites() -> list[str]:
    """Check that the pages name the Debian packages of a build, except tools that pip fetches."""
    script = pathlib.Path("scripts/install_deps.sh").read_text()
    listed = re.search(r"^packages=\(([^)]*)\)", script, re.M)
    needed = set(listed[1].split() if listed else []) - {"cmake", "ninja-build", "ccache"}
    needed -= {"pkg-config", "python3"}
    found = []
    for page in ("README.md", "docs/install.md"):
        named = re.search(r"Debian:\s+`apt install ([^`]*)`", pathlib.Path(page).read_text())
        missing = sorted(needed - set(named[1].split() if named else []))
        if missing or not needed:
            found.append(f"{page}: lacks the Debian packages {' '.join(missing)}")
    return found


def versions() -> list[str]:
    """Check that the change log has one section, for the version in base.h."""
    found = []
    header = pathlib.Path("include/robocache/base.h").read_text()
    version = ".".join(re.findall(r"^#define RBC_VERSION_[A-Z]+ (\d+)", header, re.M))
    lines = pathlib.Path("CHANGELOG.md").read_text().splitlines()
    sections = [line for line in lines if line.startswith("## ")]
    if not sections or not sections[0].startswith(f"## {version}"):
        found.append(f"CHANGELOG.md: begins with {sections[:1]}, expected ## {version}")
    citation = load("CITATION.cff")
    project = pathlib.Path("pyproject.toml").read_text()
    if f'license = "{citation["license"]}"' not in project:
        found.append("CITATION.cff: the licence differs from pyproject.toml")
    if str(citation.get("version", version)) != version:
        found.append(f"CITATION.cff: version is {citation['version']}, expected {version}")
    return found


def main() -> int:
    checks = (forms, workflows, dependabot, owners, hooks, container, prerequisites, versions)
    found = [line for check in checks for line in check()]
    print("\n".join(found) or f"{len(checks)} kinds of files are right")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
