"""The directive ``bar-chart``: horizontal bars of the numbers in a CSV file, as SVG in the page.

The first column of the file names the rows and each other column is a series. The chart takes the
colours of the page, in the light and in the dark mode.
"""

import csv
import html
import math
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives

WIDTH, ROW, GAP = 480, 20, 12
COLORS = ("var(--chart-1)", "var(--chart-2)", "var(--chart-3)", "var(--chart-4)")


def number(text):
    value = float(text)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def svg(rows, series, unit, title):
    """Bars on a logarithmic axis, because the numbers of a chart span decades."""
    values = [float(cell) for _, cells in rows for cell in cells if cell]
    low = 10 ** math.floor(math.log10(min(values)))
    high = max(values)
    room = WIDTH - 90

    def length(value):
        return max(2, room * math.log(value / low) / math.log(high / low))

    def text(x, y, words, kind="label"):
        return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{html.escape(words)}</text>'

    out, y = [], 16
    x = 0
    for name, color in zip(series, COLORS):
        out += [f'<rect x="{x}" y="{y - 11}" width="12" height="12" fill="{color}"/>']
        out += [text(x + 18, y, name)]
        x += 40 + 8 * len(name)
    y += 18
    for name, cells in rows:
        bars = [(cell, color) for cell, color in zip(cells, COLORS) if cell]
        out += [text(0, y + 12, name)]
        y += ROW
        for cell, color in bars:
            end = length(float(cell))
            bar = f'<rect x="0" y="{y + 2}" width="{end:.0f}" height="{ROW - 4}"'
            out += [f'{bar} fill="{color}"/>']
            out += [text(end + 6, y + ROW / 2 + 4, f"{number(cell)} {unit}", kind="number")]
            y += ROW
        y += GAP
    return (
        f'<svg viewBox="0 0 {WIDTH} {y}" role="img" '
        f'aria-label="{html.escape(title)}">{"".join(out)}</svg>'
    )


class BarChart(Directive):
    required_arguments = 1  # the CSV file, relative to the page
    option_spec = {"unit": directives.unchanged, "title": directives.unchanged_required}

    def run(self):
        environment = self.state.document.settings.env
        relative, path = environment.relfn2path(self.arguments[0])
        environment.note_dependency(relative)
        with Path(path).open(newline="") as file:
            (_, *series), *rows = list(csv.reader(file))
        rows = [(name, cells) for name, *cells in rows]
        title = self.options["title"]
        chart = svg(rows, series, self.options.get("unit", ""), title)
        caption = f"<figcaption>{html.escape(title)}</figcaption>"
        figure = f'<figure class="bar-chart">{caption}{chart}</figure>'
        return [nodes.raw("", figure, format="html")]


def setup(app):
    app.add_directive("bar-chart", BarChart)
    return {"parallel_read_safe": True}
