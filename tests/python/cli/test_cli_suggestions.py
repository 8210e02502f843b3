"""Each command suggests the name that was probably meant."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import recordings_with_faults as faults
from cli_process import robocache
from robocache import data
from robocache.cli._app import app

OUT = ("--rate", "5", "-o", "out.npz")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    streams = [faults.stream("/arm/joints"), faults.stream("/imu", seed=2)]
    faults.save(folder / "r.npz", *streams)
    data.save(faults.episodes(), folder / "e.npz")
    return folder


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["stats", "r.npz", "-s", "/imo"], "/imu"),
        (["stats", "e.npz", "-s", "actoin"], "action"),
        (["stats", "e.npz", "--relative", "2", "--action", "actoin"], "action"),
        (["stats", "e.npz", "--write", "openpi", "-o", "n.json", "--state", "stat"], "observation"),
        (["report", "r.npz", "--html", "p.html", "-s", "/imo"], "/imu"),
        (["resample", "r.npz", *OUT, "-s", "joint"], "/arm/joints"),
        (["resample", "r.npz", *OUT, "--method", "/imo=next"], "/imu"),
        (["resample", "r.npz", *OUT, "--kind", "/imo:a=number"], "/imu"),
        (["resample", "r.npz", *OUT, "--kind", "/imu:aa=number"], "a"),
        (["inspect", "r.npz", "--kind", "/imo:a=number"], "/imu"),
        (["inspect", "r.npz", "--ignore-topic", "/imo"], "/imu"),
        (["windows", "e.npz", "--action", "actoin"], "action"),
        (["sync", "r.npz", "--a", "/imo", "--b", "/arm/joints"], "/imu"),
        (["sync", "r.npz", "--a", "/imu:aa", "--b", "/arm/joints"], "a"),
    ],
)
def test_suggestions(place, monkeypatch, command, meant):
    monkeypatch.chdir(place)
    output = " ".join(CliRunner().invoke(app, command).output.split())
    assert f"Did you mean {meant}" in output, output


def test_suggestions_in_python(place):
    recording, episodes = data.open(place / "r.npz"), data.open(place / "e.npz")
    for read in (
        lambda: recording["/imo"],
        lambda: recording["/imu"].select(names=["aa"]),
        lambda: episodes["actoin"],
        lambda: episodes.select(tracks=["actoin"]),
    ):
        with pytest.raises(KeyError, match="Did you mean"):
            read()
    with pytest.raises(KeyError) as caught:
        recording["nothing at all"]
    assert "Did you mean" not in str(caught.value)


def test_errors_name_the_path_of_the_user(tmp_path):
    """Packages put the path that they were given into messages: a temporary one."""
    from robocache._files.atomic_write import written_beside

    target = str(tmp_path / "out.json")
    given = [
        lambda part: ValueError(f"{part}: is wrong"),
        lambda part: OSError(28, f"Error writing to '{part}'"),
        lambda part: FileNotFoundError(2, "No such file or directory", part),
    ]
    for make in given:
        with pytest.raises((ValueError, OSError)) as caught:
            with written_beside(target, False) as part:
                raise make(part)
        assert target in str(caught.value) and part not in str(caught.value)
        assert ".part" not in str(caught.value)


# ---- completion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("stats r.npz --stream /", ["/arm/joints", "/imu"]),
        ("stats r.npz -s /i", ["/imu"]),
        ("report e.npz --html a.html --exclude a", ["action"]),
        ("sync r.npz --a /imu --b /a", ["/arm/joints"]),
        ("stats nothing.npz -s /", []),
        ("stats -s /", []),
    ],
)
def test_names_of_streams_are_completed(place, words, expected):
    line = f"robocache {words}"
    asked = {"_ROBOCACHE_COMPLETE": "complete_bash", "COMP_WORDS": line}
    asked["COMP_CWORD"] = str(len(line.split()) - 1)
    run = robocache(environment=asked, cwd=place)
    assert run.returncode == 0 and run.stderr == ""
    assert run.stdout.split() == expected
