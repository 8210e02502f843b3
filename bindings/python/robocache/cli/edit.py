"""``robocache edit``: other episodes, features or tasks of LeRobot data sets, as a new one."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..data import edit as edit_data
from . import _display as show
from ._common import AsJson, FollowLinks, Output, Overwrite
from ._messages import in_cli_words

_MOST = 12  # lines of a list
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
    overwrite: Overwrite = False,
    follow_links: FollowLinks = False,
    as_json: AsJson = False,
) -> None:
    """Drop, keep, reorder, trim, merge or split episodes of LeRobot data sets; change features.

    The output is a new data set in LeRobot v3.0, so older versions are converted. Videos are copied
    without decoding where their keyframes allow it. Statistics, indexes and tasks are consistent
    again.
    """
    made = edit_data(
        [str(path) for path in paths],
        output,
        drop=drop,
        keep=keep,
        trim=_pairs(trim, "--trim", "EPISODES=BEGIN:END"),
        task=task,
        tasks=_pairs(task_of, "--task-of", "EPISODES=TEXT"),
        remove=remove or (),
        rename=_pairs(rename, "--rename", "OLD=NEW"),
        split=_splits(split),
        overwrite=overwrite,
        follow_links=follow_links,
    )
    if as_json:
        show.print_json(made.to_dict())
        return
    out = show.Page()
    lines = [("note", show.COLOURS["warning"], in_cli_words(note)) for note in made.notes[:_MOST]]
    lines += [("omitted", "", in_cli_words(str(each))) for each in made.left_out[:_MOST]]
    if lines:
        out.print(show.listed(lines))
    hidden = sum(max(0, len(each) - _MOST) for each in (made.notes, made.left_out))
    if hidden:
        out.print(f"... and {hidden} more: --json lists them")
    for name, count in made.parts.items():
        out.print(f"{name}: {_episodes(count)}", wrap=False)
    out.print(f"wrote {made.output}: {_episodes(made.episodes)}, {made.rows} rows", wrap=False)


def _episodes(count: int) -> str:
    return "1 episode" if count == 1 else f"{count} episodes"


def _pairs(texts: Texts, option: str, expected: str) -> Optional[dict[str, str]]:
    found: dict[str, str] = {}
    for text in texts or ():
        left, equals, right = text.partition("=")
        if not equals or not left or not right:
            raise typer.BadParameter(f"{text!r}: expected {expected}", param_hint=option)
        if left in found:
            raise typer.BadParameter(f"{left} is given twice", param_hint=option)
        found[left] = right
    return found or None


def _splits(texts: Texts) -> Optional[dict[str, Any]]:
    pairs = _pairs(texts, "--split", "NAME=EPISODES, or NAME=FRACTION such as train=0.8")
    if pairs is None:
        return None
    return {name: float(text) if _is_share(text) else text for name, text in pairs.items()}


def _is_share(text: str) -> bool:
    whole, point, rest = text.partition(".")
    return bool(point) and (whole or "0").isdigit() and rest.isdigit()
