"""Print how the packages in a folder were made: an in-toto statement with the SLSA v1 predicate.

Usage: provenance.py FOLDER

  SOURCE_COMMIT   the commit, if git is not available
  BUILDER_ID      a URI that says who ran `make packages` (default urn:robocache:builder:local)
  SOURCE_DATE_EPOCH, ARCHITECTURES, BINDINGS, CMAKE_ARGS, AARCH64_CUDA
                  the values of make_packages.sh
"""

import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

BUILD_TYPE = "urn:robocache:make-packages:v1"
PARAMETERS = ("ARCHITECTURES", "BINDINGS", "CMAKE_ARGS", "AARCH64_CUDA")
# The tools that make the packages, besides Python's own; only installed ones are listed.
DEBIAN_PACKAGES = (
    *("g++", "binutils", "cmake", "ninja-build", "libhwy-dev", "libxxhash-dev", "python3-dev"),
    *("openjdk-17-jdk-headless", "mono-mcs", "g++-aarch64-linux-gnu"),
)


def output(*command):
    """Return the output of a command; empty if it fails or does not exist."""
    if shutil.which(command[0]) is None:
        return ""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else ""


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def source():
    commit = os.environ.get("SOURCE_COMMIT") or output("git", "rev-parse", "HEAD")
    if not re.fullmatch(r"[0-9a-f]{40}([0-9a-f]{24})?", commit):
        sys.exit("provenance.py: the commit is unknown: set SOURCE_COMMIT, or use a git clone")
    changed = output("git", "status", "--porcelain", "--untracked-files=no").splitlines()
    return {
        "name": "robocache",
        "digest": {"gitCommit": commit},
        "annotations": {"changedFiles": [line.split()[-1] for line in changed]},
    }


def debian_packages():
    release = platform.freedesktop_os_release().get("ID", "debian")
    form = "${db:Status-Status} ${Package} ${Version} ${Architecture}\n"
    for package in DEBIAN_PACKAGES:
        fields = output("dpkg-query", "--show", f"--showformat={form}", package).split()
        if fields[:1] == ["installed"]:
            _, name, version, architecture = fields
            yield {"uri": f"pkg:deb/{release}/{name}@{version}?arch={architecture}"}


def python_packages():
    found = {
        re.sub(r"[-_.]+", "-", d.metadata["Name"]).lower(): d.version
        for d in importlib.metadata.distributions()
    }
    for name, version in sorted(found.items()):
        yield {"uri": f"pkg:pypi/{name}@{version}"}


def materials():
    yield source()
    for path in sorted(pathlib.Path("requirements/locked").glob("*.txt")):
        yield {"name": str(path), "digest": {"sha256": sha256(path)}}
    yield from debian_packages()
    nvcc = re.search(r"\bV(\d[\d.]*)", output("nvcc", "--version"))
    if nvcc:
        yield {"uri": f"pkg:generic/nvcc@{nvcc[1]}"}
    yield from python_packages()


def statement(folder):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.name, "digest": {"sha256": sha256(path)}}
            for path in sorted(folder.iterdir())
            if not path.name.endswith(".intoto.json")
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    name: os.environ[name] for name in PARAMETERS if os.environ.get(name)
                },
                "internalParameters": {
                    "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", ""),
                    "python": platform.python_version(),
                    "machine": platform.machine(),
                },
                "resolvedDependencies": list(materials()),
            },
            "runDetails": {
                "builder": {"id": os.environ.get("BUILDER_ID") or "urn:robocache:builder:local"},
                "metadata": {"finishedOn": now},
            },
        },
    }


if __name__ == "__main__":
    print(json.dumps(statement(pathlib.Path(sys.argv[1])), indent=2))
