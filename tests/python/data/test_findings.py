"""The catalogue of findings agrees with the sources, the documentation and the output."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from robocache.data._findings import MEANINGS, SEVERITIES, Finding

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "bindings" / "python" / "robocache"
PAGE = ROOT / "docs" / "concepts" / "findings.md"


@functools.cache
def findings_in_sources():
    """(file, line, severities, identifiers) of each Finding that is made; [] of a variable."""
    return list(_findings_in_sources())


def _findings_in_sources():
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "Finding(" in text else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                named = {word.arg: word.value for word in node.keywords}
                given = dict(zip(("severity", "kind"), node.args), **named)
                kinds = constants(given["kind"])
                yield path.name, node.lineno, constants(given["severity"]), kinds


def constants(node):
    if isinstance(node, ast.Constant):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return constants(node.body) + constants(node.orelse)
    return []


def test_every_finding_is_in_the_catalogue():
    found = findings_in_sources()
    assert len(found) > 30
    for file, line, severities, kinds in found:
        where = f"{file}:{line}"
        assert kinds, where  # an identifier is written where the finding is made
        for kind in kinds:
            assert kind in MEANINGS, where
            assert set(severities) <= set(MEANINGS[kind].severities), where


def test_every_identifier_and_severity_is_used():
    used: dict[str, set[str]] = {}
    variable = set()
    for _, _, severities, kinds in findings_in_sources():
        for kind in kinds:
            used.setdefault(kind, set()).update(severities)
            if not severities:
                variable.add(kind)
    assert set(used) == set(MEANINGS)
    for kind, meaning in MEANINGS.items():
        assert set(meaning.severities) <= set(SEVERITIES) and meaning.text and meaning.remedy
        if kind not in variable:
            assert set(meaning.severities) == used[kind], kind


def test_the_page_lists_every_identifier():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \| (.*) \|$", PAGE.read_text(), re.M)
    report = {kind: rest for kind, *rest in rows if rest[0].split(", ")[0] in SEVERITIES}
    assert list(report) == sorted(MEANINGS)
    for kind, (severities, text, remedy) in report.items():
        meaning = MEANINGS[kind]
        assert severities == ", ".join(meaning.severities), kind
        assert (text, remedy) == (meaning.text, meaning.remedy), kind


def test_a_finding_has_the_remedy_of_its_identifier():
    finding = Finding("warning", "gaps", "imu", "", "1 gap")
    assert finding.remedy == MEANINGS["gaps"].remedy
    assert finding.to_dict()["remedy"] == finding.remedy
    assert Finding("note", "gaps", "", "", "x", "Sort it.").remedy == "Sort it."


def test_remedies_are_printed_once_for_errors_and_warnings(tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from typer.testing import CliRunner

    import recordings_with_faults as faults
    from robocache import data
    from robocache.cli._app import app

    streams = [faults.FAULTS["gaps"](), faults.stream("b")]
    streams.append(faults.FAULTS["gaps"]())
    streams[-1] = data.RecordedStream(**{**vars_of(streams[-1]), "name": "c"})
    path = faults.save(tmp_path / "x.npz", *streams)
    printed = CliRunner().invoke(app, ["inspect", str(path)]).stdout
    remedy = MEANINGS["gaps"].remedy.split(",")[0]
    assert printed.count("what to do") == 1 and " ".join(printed.split()).count(remedy) == 1
    assert MEANINGS["latency"].remedy not in printed  # of a note
    page = tmp_path / "x.html"
    data.report_html(data.open(path), page)
    code = remedy.replace("`--max-gap`", "<code>--max-gap</code>")
    assert page.read_text().count(code) == 1
    good = faults.save(tmp_path / "good.npz")
    assert "what to do" not in CliRunner().invoke(app, ["inspect", str(good)]).stdout


def vars_of(stream):
    names = ("name", "kind", "names", "values", "clocks", "unit")
    return {name: getattr(stream, name) for name in names}


def test_sources_may_have_findings_of_their_own():
    import numpy as np

    from robocache import data

    class Source:
        path, kind, unit, damage = "x", "demo", "ns", type("D", (), {"problems": []})()
        left_out, unread = [], []
        findings = [
            Finding("warning", "repeats", "a", "", "seen by the reader"),
            Finding("warning", "repeats", "other", "", "of another stream"),
            Finding("note", "repeats", "", "", "of the whole"),
        ]
        streams = {"a": data.StreamInfo("a", "t", 3, ("x",))}

        def look(self):
            pass

        def pieces(self, names, shown=None):
            times = np.arange(3) * 10**9
            yield data._source.Piece("a", ("x",), np.arange(3.0)[:, None], {"log": times})

    found = data.checks.check(data.Recording(Source()))
    assert [f.text for f in found] == ["seen by the reader", "of the whole"]
