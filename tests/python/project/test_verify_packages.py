"""scripts/verify_statements.py finds what is wrong with what is said of packages."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).parents[3] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import sbom  # noqa: E402
import verify_statements  # noqa: E402

COMMIT = "0123456789abcdef0123456789abcdef01234567"  # pragma: allowlist secret
LIBRARY = "ab" * 32
EULA = {"license": {"name": "Some EULA", "url": "https://example.com/eula"}}


@pytest.fixture
def folder(tmp_path):
    """A package, its bills and its provenance."""
    digest = [{"alg": "SHA-256", "content": LIBRARY}]
    apache = {"expression": "Apache-2.0"}
    root = sbom.component("robocache", "0.1.0", apache, "the library", hashes=digest)
    purl = "pkg:github/google/highway@1.0.3"
    parts = [
        sbom.component("highway", "1.0.3", apache, "headers", purl=purl),
        sbom.component("cudart", "13.0", EULA, "linked statically"),
    ]
    (tmp_path / "robocache.whl").write_bytes(b"a wheel")
    (tmp_path / "robocache.cdx.json").write_text(json.dumps(sbom.cyclonedx(root, parts)))
    (tmp_path / "robocache.spdx.json").write_text(json.dumps(sbom.spdx(root, parts)))
    environment = {**os.environ, "SOURCE_COMMIT": COMMIT, "BUILDER_ID": "urn:example:builder"}
    made = subprocess.run(
        [sys.executable, SCRIPTS / "provenance.py", tmp_path],
        env={**environment, "GIT_DIR": str(tmp_path / "none")},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (tmp_path / "robocache.intoto.json").write_text(made)
    return tmp_path


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_good_ones(folder):
    assert verify_statements.check_bills(folder) == ([], {LIBRARY})
    assert verify_statements.check_provenance(folder) == []
    found, missing = verify_statements.schemas(folder)
    assert found == [] and set(missing) <= {"cyclonedx", "spdx_tools"}


def definition(statement):
    return statement["predicate"]["buildDefinition"]


@pytest.mark.parametrize(
    "edit,problem",
    [
        (lambda s: s["subject"].pop(), "does not list robocache.whl"),
        (lambda s: s["subject"][0].update(name="other"), "lists other, which is missing"),
        (lambda s: s["subject"][2]["digest"].update(sha256="0" * 64), "has another sum"),
        (
            lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"),
            "is not an in-toto statement",
        ),
        (
            lambda s: s.update(predicateType="https://slsa.dev/provenance/v0.2"),
            "is not SLSA v1 provenance",
        ),
        (lambda s: s["predicate"]["runDetails"]["builder"].clear(), "names no builder"),
        (lambda s: definition(s)["resolvedDependencies"].pop(0), "0 source commits"),
        (lambda s: definition(s).update(buildType="make"), "has no build type"),
        (lambda s: definition(s)["resolvedDependencies"].append({}), "neither name nor sum"),
        (
            lambda s: definition(s)["resolvedDependencies"][0]["annotations"].update(
                changedFiles=["Makefile"]
            ),
            "was made from changed files: Makefile",
        ),
    ],
)
def test_bad_provenance(folder, edit, problem):
    change(folder / "robocache.intoto.json", edit)
    assert any(problem in line for line in verify_statements.check_provenance(folder))


def test_a_package_that_was_changed(folder):
    (folder / "robocache.whl").write_bytes(b"another wheel")
    assert "robocache.whl has another sum" in verify_statements.check_provenance(folder)[0]


def test_bills_that_differ(folder):
    change(folder / "robocache.spdx.json", lambda bill: bill["packages"].pop())
    (line,) = verify_statements.check_bills(folder)[0]
    assert "does not list the same as robocache.cdx.json" in line


@pytest.mark.skipif(
    len(verify_statements.schemas(pathlib.Path(__file__).parent)[1]) > 0,
    reason="SKIPPED: cyclonedx and spdx_tools are not installed",
)
@pytest.mark.parametrize(
    "name,edit",
    [
        ("robocache.cdx.json", lambda bill: bill["components"][0].update(type="thing")),
        ("robocache.cdx.json", lambda bill: bill.update(unknown=1)),
        ("robocache.spdx.json", lambda bill: bill["packages"][0].update(licenseDeclared="Mine")),
        ("robocache.spdx.json", lambda bill: bill.pop("dataLicense")),
    ],
)
def test_bills_against_their_schemas(folder, name, edit):
    change(folder / name, edit)
    assert verify_statements.schemas(folder)[0]
