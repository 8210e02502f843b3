"""Check packages as they lie there, wherever they came from: verify_packages.py [--strict] FOLDER

Their sums, the bills of materials, one for each architecture, the statement of provenance, that
every package carries the libraries that the bills name alone, and that these are hardened. Nothing
of the packages is run. With --strict it fails where what knows the schemas of bills is missing.
"""

from __future__ import annotations

import base64
import csv
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import verify_statements
from verify_statements import sha256

HARDENING = pathlib.Path(__file__).parent.parent / "tests/source/hardening.py"


def check_sums(folder: pathlib.Path) -> list[str]:
    told = {}
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        told[line[66:]] = line[:64]
    own = ("SHA256SUMS", "SHA256SUMS.sigstore.json")  # the signature is made after the sums
    there = {path.name for path in folder.iterdir()} - set(own)
    found = [f"{name}: is not in SHA256SUMS" for name in sorted(there - set(told))]
    for name, expected in sorted(told.items()):
        if name not in there:
            found.append(f"{name}: is missing")
        elif sha256((folder / name).read_bytes()) != expected:
            found.append(f"{name}: is not what SHA256SUMS tells")
    return found


def files_of(path: pathlib.Path) -> dict[str, bytes]:
    """Content by name, of any archive; none leads out of the folder that it is unpacked to."""
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            members = [m for m in archive.getmembers() if m.isfile()]
            return {m.name: archive.extractfile(m).read() for m in members}
    if path.suffix in (".whl", ".jar", ".nupkg"):
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    return {}


def check_record(name: str, files: dict[str, bytes]) -> list[str]:
    """A wheel's own list of what is in it."""
    (record,) = [file for file in files if file.endswith(".dist-info/RECORD")]
    told = {row[0]: row[1] for row in csv.reader(io.StringIO(files[record].decode()))}
    found = []
    if set(told) != {file for file in files if not file.endswith("/")}:
        found.append(f"{name}: RECORD lists other files than there are")
    for file, digest in told.items():
        if file == record or file not in files:
            continue
        made = base64.urlsafe_b64encode(bytes.fromhex(sha256(files[file]))).rstrip(b"=").decode()
        if digest != f"sha256={made}":
            found.append(f"{name}: {file} is not what RECORD tells")
    return found


def check_library(name: str, content: bytes) -> list[str]:
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(content)
        file.flush()
        command = [sys.executable, HARDENING, file.name, "--optimized"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    return [f"{name}: {line.partition(': ')[2]}" for line in run.stdout.splitlines()]


def verify(folder: pathlib.Path) -> list[str]:
    found = check_sums(folder)
    trees = [path for path in folder.glob("*.tar.gz") if "-linux-" in path.name]
    bills = list(folder.glob("*.cdx.json"))
    if len(bills) != len(trees):
        found.append(f"{len(bills)} bills of materials, expected {len(trees)}: one for each tree")
    wrong, named = verify_statements.check_bills(folder)
    found += wrong + verify_statements.check_provenance(folder)
    hardened = set()
    carriers = 0
    for path in sorted(folder.iterdir()):
        files = files_of(path)
        for name in files:
            if name.startswith("/") or ".." in name.split("/"):
                found.append(f"{path.name}: {name} leads out of it")
        if path.suffix == ".whl":
            found += check_record(path.name, files)
        for name, content in files.items():
            if not re.search(r"librobocache\.so[.\d]*$", name):
                continue
            carriers += 1
            if sha256(content) not in named:
                found.append(f"{path.name}: {name} is the library of no bill of materials")
            if sha256(content) not in hardened:
                hardened.add(sha256(content))
                found += check_library(f"{path.name}: {name}", content)
    if carriers == 0:
        found.append("no package carries the library")
    return found


def main() -> int:
    arguments = sys.argv[1:]
    folder = pathlib.Path(arguments[-1])
    found = verify(folder)
    wrong, missing = verify_statements.schemas(folder)
    found += wrong
    if missing:
        told = f"bills are not held to their schemas: {', '.join(missing)} is not installed"
        found += [told] if "--strict" in arguments else []
        print(f"Left out: {told}")
    for line in found:
        print(line)
    print(f"{folder}: {len(list(folder.iterdir()))} files, problems: {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
