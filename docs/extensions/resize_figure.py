"""The directive ``resize-figure``: what the rules or the fits of images do to one frame."""

import resized_frames
from docutils import nodes
from docutils.parsers.rst import Directive, directives


class ResizeFigure(Directive):
    required_arguments = 1  # "rules" or "fits"

    def run(self):
        kind = directives.choice(self.arguments[0], ("rules", "fits"))
        for module in (resized_frames, resized_frames.images_reference):
            self.state.document.settings.env.note_dependency(module.__file__)
        return [nodes.raw("", resized_frames.figure(kind), format="html")]


def setup(app):
    app.add_directive("resize-figure", ResizeFigure)
    return {"parallel_read_safe": True}
