"""``robocache edit``: other episodes, features, tasks or image sizes of LeRobot data sets."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .._printable import plural
from ..data import edit as edit_data
from . import _display as show
from ._common import AsJson, FollowLinks, Output, Overwrite, pairs
from ._images import Filter, Fit, Lossless, Rule, how, resizes

Texts = Optional[list[str]]


def edit(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="LeRobot data sets; several are merged, in this order.", show_default=False
        ),
    ],
    output: Output,
    drop: Annotated[
        Optional[str],
        typer.Option(
            help="Episodes to drop, such as 0,2,5-7. All options count the episodes of the input "
            "from 0.",
            metavar="EPISODES",
        ),
    ] = None,
    keep: Annotated[
        Optional[str],
        typer.Option(help="Episodes to keep, in this order.", metavar="EPISODES"),
    ] = None,
    trim: Annotated[
        Texts,
        typer.Option(
            help="Rows to keep of some episodes, such as 0-3=10: or all=:-5. Repeatable.",
            metavar="EPISODES=BEGIN:END",
        ),
    ] = None,
    task: Annotated[Optional[str], typer.Option(help="The task of all episodes.")] = None,
    task_of: Annotated[
        Texts,
        typer.Option(
            "--task-of", help="The task of some episodes. Repeatable.", metavar="EPISODES=TEXT"
        ),
    ] = None,
    remove: Annotated[
        Texts, typer.Option(help="A feature to remove. Repeatable.", metavar="FEATURE")
    ] = None,
    rename: Annotated[
        Texts, typer.Option(help="A new name of a feature. Repeatable.", metavar="OLD=NEW")
    ] = None,
    split: Annotated[
        Texts,
        typer.Option(
            help="Write several data sets into the folder OUTPUT, each with some episodes or a "
            "fraction, such as train=0.8. Repeatable.",
            metavar="NAME=EPISODES",
        ),
    ] = None,
    resize: Annotated[
        Texts,
        typer.Option(
            help="Resize the frames of all cameras, or of one, or use a preset such as openpi. "
            "Repeatable.",
            metavar="[CAMERA=]WIDTHxHEIGHT",
        ),
    ] = None,
    rule: Rule = None,
    filter: Filter = None,  # noqa: A002
    fit: Fit = None,
    lossless: Lossless = False,
    overwrite: Overwrite = False,
    follow_links: FollowLinks = False,
    as_json: AsJson = False,
) -> None:
    """Drop, keep, reorder, trim, merge or split episodes of LeRobot data sets; resize cameras.

    The output is a new data set in LeRobot v3.0, so older versions are converted. Videos are copied
    without decoding where their keyframes allow it. Statistics, indexes and tasks are consistent
    again.
    """
    made = edit_data(
        [str(path) for path in paths],
        output,
        drop=drop,
        keep=keep,
        trim=pairs(trim, "--trim", "EPISODES=BEGIN:END"),
        tasks={
            **({} if task is None else {"all": task}),
            **pairs(task_of, "--task-of", "EPISODES=TEXT"),
        },
        remove=remove or (),
        rename=pairs(rename, "--rename", "OLD=NEW"),
        split=_splits(split),
        resize=resizes(resize, how(rule, filter, fit), "--resize"),
        lossless=lossless,
        overwrite=overwrite,
        follow_links=follow_links,
    )
    if as_json:
        show.print_json(made.to_dict())
        return
    out = show.Page()
    show.print_remarks(out, {"note": made.notes, "omitted": made.left_out})
    for name, count in made.parts.items():
        out.print(f"{name}: {plural(count, 'episode')}", wrap=False)
    out.print(
        f"wrote {made.output}: {plural(made.episodes, 'episode')}, {plural(made.rows, 'row')}",
        wrap=False,
    )


def _splits(texts: Texts) -> Optional[dict[str, Any]]:
    named = pairs(texts, "--split", "NAME=EPISODES, or NAME=FRACTION such as train=0.8")
    parts = {name: float(text) if _is_share(text) else text for name, text in named.items()}
    return parts or None


def _is_share(text: str) -> bool:
    whole, point, rest = text.partition(".")
    return bool(point) and (whole or "0").isdigit() and rest.isdigit()
