"""Writes llms.txt next to the index: each page with its title and its first sentence."""

import re
from pathlib import Path

from docutils import nodes

INTRODUCTION = """# {project}

> {description}

"""


def first_sentence(doctree):
    for paragraph in doctree.findall(nodes.paragraph):
        text = re.sub(r"\s+", " ", paragraph.astext()).strip()
        if text:
            return re.split(r"(?<=[.!?])\s", text)[0]
    return ""


def write_list(app, error):
    if error or app.builder.format != "html":
        return
    lines = [INTRODUCTION.format(project=app.config.project, description=app.config.description)]
    for name in sorted(app.env.found_docs, key=lambda each: (each != "index", each)):
        if name.startswith(("api/python/objects/", "api/headers/")):
            continue
        title = app.env.titles[name].astext()
        sentence = first_sentence(app.env.get_doctree(name))
        lines += [f"- [{title}]({name}.html): {sentence}\n"]
    (Path(app.outdir) / "llms.txt").write_text("".join(lines))


def setup(app):
    app.add_config_value("description", "", "env")
    app.connect("build-finished", write_list)
    return {"parallel_read_safe": True}
