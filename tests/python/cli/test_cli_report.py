"""`robocache report`: the selection of streams, and the alignment that it shows."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import recordings_with_faults as faults
from robocache.cli._app import app


@pytest.fixture
def bag(tmp_path):
    names = ("/arm/left", "/arm/right", "/imu")
    streams = [faults.stream(name, seed=i) for i, name in enumerate(names)]
    return faults.save(tmp_path / "r.npz", *streams)


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--stream", "/imu"], ["/imu"]),
        (["--exclude", "/arm/*"], ["/imu"]),
        (["--exclude", "/imu", "--exclude", "/arm/l*"], ["/arm/right"]),
        (["--exclude", "/arm"], ["/imu"]),
    ],
)
def test_selected_streams(bag, tmp_path, options, shown):
    page = tmp_path / "page.html"
    run("report", bag, "--html", page, *options)
    text = page.read_text()
    for name in ("/arm/left", "/arm/right", "/imu"):
        assert (f"<h3>{name}</h3>" in text) == (name in shown), name


def test_names_that_do_not_exist(bag, tmp_path):
    page = tmp_path / "page.html"
    text = run("report", bag, "--html", page, "--stream", "/imo", code=1)
    assert "--stream /imo: no such stream. Did you mean /imu?" in text and not page.exists()
    text = run("report", bag, "--html", page, "--exclude", "/imo")
    assert "--exclude /imo: no such topic or type. Did you mean /imu?" in text
    text = run("report", bag, "--html", page, "--exclude", "*", "--overwrite", code=1)
    assert "no stream is left to report on" in text


def test_the_page_shows_an_alignment(bag, tmp_path):
    page = tmp_path / "page.html"
    run("report", bag, "--html", page, "--rate", 20, "--span", "union", "--max-gap", 0.5)
    assert 'class="after"' in page.read_text() and "aligned at 20 Hz" in page.read_text()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--span", "all", "--rate", 5], 2, "choose intersection or union"),
        (["--span", "union"], 2, "--span needs an alignment"),
        (["--rate", 0], 2, "expected a finite number above 0"),
    ],
)
def test_refusals(bag, tmp_path, options, code, words):
    page = tmp_path / "page.html"
    assert words in run("report", bag, "--html", page, *options, code=code)
    assert not page.exists()
