"""The reference of the command line, from the commands themselves.

Writes api/commands.rst (ignored by git).
"""

from pathlib import Path

from c_reference import table, write_if_changed

INTRODUCTION = """:description: All commands and options of robocache

Command line reference
======================

All commands and options of ``robocache``. The :doc:`tour </quickstart/cli>` shows what they print,
:doc:`/api/json` what they print with ``--json``, and :doc:`/concepts/findings` lists what
``inspect`` can find.
"""


def escaped(text):
    for character in "\\*`|_":
        text = text.replace(character, "\\" + character)
    return text


def heading(title, line):
    return f"{title}\n{line * len(title)}\n"


def label(name):
    """Return the name of a command for a reference, without spaces."""
    return name.replace(" ", "-")


def section(name, command, example, line):
    from robocache.cli import _help

    described = _help.parameters(command)
    parts = [f".. _command-{label(name)}:\n", heading(name, line)]
    parts += [".. code-block:: text\n\n   " + _help.usage(name, described) + "\n"]
    parts += [escaped(text) + "\n" for text in _help.paragraphs(command.__doc__)]
    parts += [f"Example:\n\n.. code-block:: sh\n\n   {example}\n"]
    for kind, are_arguments in (("Argument", True), ("Option", False)):
        rows = [
            (f"``{each.usage}``", escaped(each.description))
            for each in described
            if each.is_argument == are_arguments
        ]
        if rows:
            parts += [table((kind, "Meaning"), rows, "30 70")]
    return "\n".join(parts)


def write_page(app):
    from robocache.cli import _help
    from robocache.cli._app import COMMANDS

    rows = [
        (f":ref:`{name} <command-{label(name)}>`", escaped(_help.paragraphs(command.__doc__)[0]))
        for name, (command, _) in COMMANDS.items()
    ]
    parts = [INTRODUCTION, table(("Command", "What it does"), rows, "20 80")]
    parts += [section(name, *each, "-") for name, each in COMMANDS.items()]
    write_if_changed(Path(app.srcdir) / "api" / "commands.rst", "\n".join(parts))


def setup(app):
    app.connect("builder-inited", write_page, priority=100)
    return {"parallel_read_safe": True}
