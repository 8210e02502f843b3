"""Sphinx: the pages of this folder and the Python reference; `make docs` runs it and Doxygen."""

import posixpath
import re

from docutils import nodes
from sphinx.addnodes import download_reference

import robocache

project = "RoboCache"
copyright = "the RoboCache authors, Apache-2.0"
release = version = robocache.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
myst_heading_anchors = 3
nitpicky = True

# The signatures are for type checkers: long, and with names that are not public.
autodoc_typehints = "none"
autodoc_mock_imports = ["torch"]  # 5 GB for the page of robocache.torch
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"RoboCache {release}"
html_copy_source = False
html_show_sphinx = False

# What Doxygen makes of a header, from the root of the site.
HEADER = re.compile(r"include/robocache/(\w+)\.(hpp|h)$")


def link_headers(app, doctree):
    """Links to a header, which lead to the file in a checkout, lead to its reference here."""
    for node in list(doctree.findall(download_reference)):
        header = HEADER.search(node["reftarget"])
        if header:
            page = f"cpp/{header[1]}_8{header[2]}.html"
            here = posixpath.dirname(app.env.docname)
            reference = nodes.reference(refuri=posixpath.relpath(page, here or "."))
            reference.extend(node.children)
            node.replace_self(reference)


def setup(app):
    # Before Sphinx collects the files to be downloaded.
    app.connect("doctree-read", link_headers, priority=100)
    return {"parallel_read_safe": True}
