"""Reports, findings, statistics and loaders as print and notebooks show them."""

from __future__ import annotations

import html.parser

import numpy as np
import pytest

import recordings_with_faults as faults
import robocache as rbc
from robocache import _printable, data


class Table(html.parser.HTMLParser):
    """Collect the cells of a table, and check that every element is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1] in ("td", "th"):
            self.cells[-1] += text


def cells_of(value):
    return Table(value._repr_html_()).cells


def test_report():
    report = faults.recording(faults.FAULTS["gaps"]()).report()
    assert repr(report) == str(report) and "rate in Hz, times in ms" in repr(report)
    assert len(repr(report).split("\n")) == 3
    assert {"rate", "gaps", "arm"} <= set(cells_of(report))


def test_findings():
    found = data.checks.check(faults.recording(faults.FAULTS["gaps"]()))
    assert isinstance(found, list) and len(found) > 0
    assert repr(found) == "\n".join(map(str, found))
    assert cells_of(found)[:3] == ["severity", "where", "finding"]
    assert found[0].text in cells_of(found) and found[0].text in cells_of(found[0])
    clean = data.checks.check(faults.episodes())
    assert clean == [] and repr(clean) == "no findings" and "no findings" in clean._repr_html_()


def test_names_are_escaped():
    track = rbc.Track(np.zeros((5, 2)), [0, 5], times=np.arange(5.0))
    report = rbc.Episodes({"<script>&": track}).report("s")
    assert "<script>" not in report._repr_html_() and "<script>&" in cells_of(report)


def test_statistics_and_accumulators():
    result = rbc.statistics(np.arange(6.0).reshape(3, 2))
    assert {"mean", "q50", "2"} <= set(cells_of(result))
    counted = rbc.StatisticsAccumulator(2, (0.5,))
    assert repr(counted) == "StatisticsAccumulator(channels=2, pass=1, quantiles=[0.5])"
    counted.update(np.arange(6.0).reshape(3, 2))
    assert counted.next_pass() and "pass=2" in repr(counted)
    assert cells_of(counted)[-4:] == ["pass", "2", "quantiles", "[0.5]"]


def test_merge_returns_the_accumulator():
    parts = [rbc.StatisticsAccumulator(1, ()) for _ in range(3)]
    for i, part in enumerate(parts):
        part.update(np.full((2, 1), float(i)))
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert merged is parts[0] and merged.result().count.tolist() == [6]


def test_loader():
    torch = pytest.importorskip("torch")
    track = rbc.Track(torch.arange(12.0)[:, None], [0, 5, 12])
    spec = rbc.WindowSpec({"past": rbc.Window([-1, 0], track="state")})
    loader = rbc.torch.WindowLoader(rbc.Episodes({"state": track}), spec, batch_size=5, seed=3)
    words = "samples=12, batch_size=5, batches=3, epoch=0, seed=3, shuffle=True, rank=0 of 1"
    assert repr(loader) == f"WindowLoader({words})"
    assert cells_of(loader)[:4] == ["WindowLoader", "", "samples", "12"]


def test_kinds_have_an_article():
    values = [None, 3, [], np.zeros(2), rbc.Track(np.zeros((1, 1)), [0, 1]), Ellipsis]
    kinds = ["None", "an int", "a list", "an ndarray", "a Track", "an ellipsis"]
    assert [_printable.kind_of(value) for value in values] == kinds
