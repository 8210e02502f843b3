"""Sphinx: these pages and the references of Python, C, C++ and the command line.

`make docs` runs it. It needs Doxygen and requirements/docs.txt, and nothing compiled.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import stub_library  # noqa: E402

project = "RoboCache"
copyright = "the RoboCache authors, Apache-2.0"
release = version = stub_library.install()
description = (
    "Raw robot recordings to tensors for a model: sensors on one clock, point clouds into voxels, "
    "on CPU and GPU."
)

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "breathe",
    "sphinx_copybutton",
    "sphinx_design",
    "bar_chart",
    "c_reference",
    "command_reference",
    "llms_txt",
    "resize_figure",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
myst_html_meta = {"description": description}
highlight_language = "none"  # of blocks in comments of headers
smartquotes = False  # "--json" keeps its dashes
nitpicky = True
# Types that the headers use and do not define, such as int64_t.
nitpick_ignore_regex = [("c(pp)?:.*", ".*")]
suppress_warnings = ["duplicate_declaration.cpp"]  # every C++ header opens the namespace

# The signatures are for type checkers: long, and with names that are not public.
autodoc_typehints = "none"
autodoc_mock_imports = ["torch"]  # 5 GB for the page of robocache.torch
autosummary_generate = True
autosummary_ignore_module_all = False
templates_path = ["templates"]
exclude_patterns = ["templates"]
numpydoc_show_class_members = False
# Classes whose parameters are described one by one, or that only calls make.
autosummary_context = {
    "without_signature": """
        robocache.Report robocache.StreamReport robocache.Stream robocache.Track
        robocache.WindowStream robocache.SparseVoxels robocache.Cloud
        robocache.StatisticsAccumulator robocache.StatisticsResult robocache.Channel
        robocache.ContextInfo robocache.LiveStream robocache.LiveTick robocache.LiveCounters
        robocache.Info robocache.Grid robocache.Status robocache.data.Recording
        robocache.data.SyncResult robocache.data.PointCloud robocache.data.PointClouds
        robocache.data.StreamInfo robocache.data.TrackInfo robocache.data.Piece
        robocache.data.Format robocache.data.LeftOut robocache.data.Unread robocache.data.Problem
        robocache.data.checks.Finding robocache.data.checks.Survey
        robocache.data.checks.StreamSurvey robocache.ray.Align robocache.ray.Statistics
        robocache.ray.Windows robocache.torch.Stream robocache.torch.WindowStream
        robocache.torch.WindowBatch
    """.split()
}

breathe_default_project = "robocache"
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"

html_theme = "furo"
html_title = f"RoboCache {release}"
html_short_title = "RoboCache"
html_favicon = "images/favicon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "static" / "search_scorer.js")
html_copy_source = False
html_show_sphinx = False
