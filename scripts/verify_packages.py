"""Check packages from any source: verify_packages.py [--strict] FOLDER

Checks their sums, the bills of materials (one per architecture), the statement of provenance, that
every package has only libraries that the bills name, and that each binary in any package is
hardened. Binaries are found by content; a source distribution must not have one. Nothing is run.
With --strict it fails if the libraries with the schemas of bills are missing.
"""

from __future__ import annotations

import base64
import csv
import io
import pathlib
import re
import sys
import tarfile
import tempfile
import zipfile

import verify_statements
from verify_statements import sha256

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/source"))
import hardening  # noqa: E402


def check_sums(folder: pathlib.Path) -> list[str]:
    sums = {}
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        sums[line[66:]] = line[:64]
    own = ("SHA256SUMS", "SHA256SUMS.sigstore.json")  # the signature is made after the sums
    there = {path.name for path in folder.iterdir()} - set(own)
    found = [f"{name}: is not in SHA256SUMS" for name in sorted(there - set(sums))]
    for name, expected in sorted(sums.items()):
        if name not in there:
            found.append(f"{name}: is missing")
        elif sha256((folder / name).read_bytes()) != expected:
            found.append(f"{name}: differs from its sum in SHA256SUMS")
    return found


def unpacked(name: str, content: bytes) -> dict[str, bytes]:
    """Return the content by name of an archive, recursively; {} if the first bytes are not an
    archive's.

    Files of an inner archive have names of the form "ARCHIVE: NAME".
    """
    files: dict[str, bytes] = {}
    if content.startswith(b"\x1f\x8b") and tarfile.is_tarfile(io.BytesIO(content)):
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            for member in tar.getmembers():
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None:
                    files[member.name] = file.read()
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            files = {entry: zipped.read(entry) for entry in zipped.namelist()}
    for outer, inner in list(files.items()):
        files.update({f"{outer}: {file}": data for file, data in unpacked(outer, inner).items()})
    return files


def binaries_of(name: str, content: bytes) -> dict[str, bytes]:
    """Return all ELF files in a package, by name."""
    return {file: data for file, data in unpacked(name, content).items() if hardening.is_elf(data)}


def check_record(name: str, files: dict[str, bytes]) -> list[str]:
    """Check a wheel's own list of its files."""
    (record,) = [file for file in files if file.endswith(".dist-info/RECORD")]
    hashes = {row[0]: row[1] for row in csv.reader(io.StringIO(files[record].decode()))}
    found = []
    if set(hashes) != {file for file in files if not file.endswith("/")}:
        found.append(f"{name}: RECORD does not list the files of the wheel")
    for file, digest in hashes.items():
        if file == record or file not in files:
            continue
        made = base64.urlsafe_b64encode(bytes.fromhex(sha256(files[file]))).rstrip(b"=").decode()
        if digest != f"sha256={made}":
            found.append(f"{name}: {file} differs from its sum in RECORD")
    return found


def check_hardening(content: bytes) -> list[str]:
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(content)
        file.flush()
        return hardening.problems(file.name, optimized=True, packaged=True)


def verify(folder: pathlib.Path) -> list[str]:
    found = check_sums(folder)
    trees = [path for path in folder.glob("*.tar.gz") if "-linux-" in path.name]
    bills = list(folder.glob("*.cdx.json"))
    if len(bills) != len(trees):
        found.append(f"{len(bills)} bills of materials, expected {len(trees)}: one for each tree")
    wrong, named = verify_statements.check_bills(folder)
    found += wrong + verify_statements.check_provenance(folder)
    problems: dict[str, list[str]] = {}  # by the sum of a binary, which several packages may have
    carriers = 0
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        files = unpacked(path.name, content)
        for name in files:
            if name.startswith("/") or ".." in name.split("/"):
                found.append(f"{path.name}: {name} leads out of it")
        if path.suffix == ".whl":
            found += check_record(path.name, files)
        for name, binary in binaries_of(path.name, content).items():
            place = f"{path.name}: {name}"
            digest = sha256(binary)
            if path.name.endswith(".tar.gz") and path not in trees:
                found.append(f"{place} is a binary in a source distribution")
            if digest not in problems:
                problems[digest] = check_hardening(binary)
                found += [f"{place}: {problem}" for problem in problems[digest]]
            if re.search(r"librobocache\.so[.\d]*$", name):
                carriers += 1
                if digest not in named:
                    found.append(f"{place} is a library that no bill of materials names")
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
        problem = f"schemas of bills are not checked: {', '.join(missing)} is not installed"
        found += [problem] if "--strict" in arguments else []
        print(f"Skipped: {problem}")
    for line in found:
        print(line)
    print(f"{folder}: {len(list(folder.iterdir()))} files, problems: {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
