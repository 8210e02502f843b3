"""The C and C++ reference: Doxygen reads the headers, Breathe writes a page for each.

Writes api/headers (ignored by git): a page per header, and tables of all headers.
Needs the program doxygen.
"""

import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref

ROOT = Path(__file__).resolve().parents[2]
HEADER = re.compile(r"include/robocache/(\w+)\.(hpp|h)$")
SECTIONS = """
    briefdescription detaileddescription func innernamespace innerclass user-defined enum typedef
    define var public-type public-func public-static-func public-attrib public-static-attrib
"""
PAGE = """:description: Functions, types and constants of {header}

.. _{label}:

{header}
{underline}

.. doxygenfile:: {header}
   :project: robocache
   :sections: {sections}
"""


def headers(suffix):
    return sorted((ROOT / "include" / "robocache").glob(f"*.{suffix}"))


def page_of(header):
    return header.replace(".", "_")


def run_doxygen(output, version):
    """Write Doxygen's XML of all headers into output/xml."""
    output.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "RBC_VERSION": version, "RBC_DOXYGEN_OUTPUT": str(output)}
    subprocess.run(["doxygen", "docs/Doxyfile"], cwd=ROOT, env=environment, check=True)
    return output / "xml"


def write_if_changed(path, text):
    """Write a page; an unchanged page keeps its time, so that Sphinx does not read it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def functions_of(xml, header):
    """The names of the functions of a C header, in the order of the header, without ...Init."""
    root = ElementTree.parse(xml / f"{header.replace('.', '_8')}.xml").getroot()
    found = []
    for member in root.iter("memberdef"):
        if member.get("kind") == "function":
            line = int(member.find("location").get("line"))
            found.append((line, member.findtext("name")))
    return [name for _, name in sorted(found) if not name.endswith("Init")]


def summary_of(path):
    """The first sentence of a header's first comment."""
    text = path.read_text()
    comment = re.match(r"/\*(.*?)\*/|((?://.*\n)+)", text, re.S)[0]
    line = re.sub(r"\s+", " ", re.sub(r"(?m)^\s*(/\*|\*/|\*|//)", "", comment))
    line = line.partition("SPDX")[0].strip()
    line = re.sub(r"^RoboCache(:| for C)\s*", "", line)
    line = re.split(r"(?<=[^.])\. ", line)[0].rstrip(" .*/")
    return line[:1].upper() + line[1:]


def c_table(xml):
    """A table of all C headers: their contents and functions."""
    rows = []
    for path in headers("h"):
        names = functions_of(xml, path.name)
        linked = ", ".join(f":c:func:`{name}`" for name in names)
        rows += [(link(path), summary_of(path), linked or "includes all C headers")]
    return table(("Header", "Contents", "Functions"), rows, "20 30 50")


def cpp_table():
    rows = [(link(path), summary_of(path)) for path in headers("hpp")]
    return table(("Header", "Contents"), rows, "25 75")


def link(path):
    return f":doc:`{path.name} </api/headers/{page_of(path.name)}>`"


def table(head, rows, widths):
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        f"   :widths: {widths}",
        "   :class: stacked",
        "",
    ]
    for row in [head, *rows]:
        for n, cell in enumerate(row):
            lines += [f"   {'* -' if n == 0 else '  -'} {cell}".rstrip()]
    return "\n".join(lines) + "\n"


def write_pages(app):
    source = Path(app.srcdir) / "api" / "headers"
    xml = run_doxygen(Path(app.doctreedir).parent / "doxygen", app.config.version)
    app.config.breathe_projects = {"robocache": str(xml)}
    for path in headers("h") + headers("hpp"):
        text = PAGE.format(
            header=path.name,
            label=path.name.replace(".", "_8"),
            underline="=" * len(path.name),
            sections=" ".join(SECTIONS.split()),
        )
        write_if_changed(source / f"{page_of(path.name)}.rst", text)
    write_if_changed(source / "table.txt", c_table(xml))
    write_if_changed(source / "cpp_table.txt", cpp_table())


def link_headers(app, doctree):
    """Make links to a header file in the checkout links to the page of that header."""
    for node in list(doctree.findall(download_reference)):
        header = HEADER.search(node["reftarget"])
        if header:
            reference = pending_xref(
                "",
                refdomain="std",
                reftype="doc",
                reftarget=f"/api/headers/{header[1]}_{header[2]}",
                refdoc=app.env.docname,
                refexplicit=True,
            )
            inner = nodes.inline()
            inner.extend(node.children)
            reference += inner
            node.replace_self(reference)


def setup(app):
    app.connect("builder-inited", write_pages, priority=100)
    # Before Sphinx collects the files to be downloaded.
    app.connect("doctree-read", link_headers, priority=100)
    return {"parallel_read_safe": True}
