"""Options of the commands that resize images."""

from typing import Annotated, Any, Optional

import typer

from .. import RoboCacheError, image_presets
from .._operations.images import FILTERS, FITS, RULES
from .._suggestions import did_you_mean
from ..data._write.resize import Resize
from ._common import add_once

Rule = Annotated[
    Optional[str],
    typer.Option(
        help=f"Whose bits a resize has: {', '.join(RULES)}; default: pillow.", metavar="NAME"
    ),
]
Filter = Annotated[
    Optional[str],
    typer.Option(help=f"{', '.join(FILTERS)}, by the rule; default: bilinear."),
]
Fit = Annotated[
    Optional[str],
    typer.Option(
        help=f"How another shape is filled: {', '.join(FITS)}; default: stretch.", metavar="NAME"
    ),
]
Lossless = Annotated[
    bool,
    typer.Option(
        "--lossless", help="Encode videos without a loss, as H.264 in RGB: much larger files."
    ),
]


def size_of(text: str, option: str) -> tuple[int, int]:
    """Return the height and the width of WIDTHxHEIGHT."""
    width, cross, height = text.lower().partition("x")
    if not cross or not (width.isdigit() and height.isdigit()):
        raise typer.BadParameter(f"{text!r}: expected WIDTHxHEIGHT", param_hint=option)
    return int(height), int(width)


def how(rule: Optional[str], filter_name: Optional[str], fit: Optional[str]) -> dict[str, str]:
    """Return the arguments of images that --rule, --filter and --fit give; check their names."""
    named = {"rule": (rule, RULES), "filter": (filter_name, FILTERS), "fit": (fit, FITS)}
    for name, (value, known) in named.items():
        if value is not None and value not in known:
            choices = ", ".join(known)
            raise typer.BadParameter(f"{value!r}: choose {choices}", param_hint=f"--{name}")
    return {name: value for name, (value, _) in named.items() if value is not None}


def resize_of(text: Optional[str], options: dict[str, str], option: str) -> Any:
    """Return the resize that WIDTHxHEIGHT or a preset describes; None without a text."""
    if text is None:
        if options:
            raise typer.BadParameter(f"needs {option}", param_hint=f"--{next(iter(options))}")
        return None
    if text in image_presets():
        if options:
            raise typer.BadParameter(
                f"{text} is a preset, which has its own --{next(iter(options))}", param_hint=option
            )
        return text
    if not text[:1].isdigit():
        known = ", ".join(image_presets())
        near = did_you_mean(text, image_presets())
        sizes = "" if option == "--preset" else "WIDTHxHEIGHT, or "
        raise typer.BadParameter(
            f"{text!r}: expected {sizes}one of {known}{near}", param_hint=option
        )
    size = {"size": size_of(text, option), **options}
    try:
        Resize(size, option)
    except RoboCacheError as error:  # the rule does not have the filter
        name, _, words = str(error).partition(": ")
        raise typer.BadParameter(words, param_hint=f"--{name}") from None
    except ValueError as error:
        raise typer.BadParameter(str(error).partition(": ")[2], param_hint=option) from None
    return size


def resizes(texts: Optional[list[str]], options: dict[str, str], option: str) -> Any:
    """Return the resize of all cameras, or of each that is named; None without a text."""
    if not texts:
        return resize_of(None, options, option)
    found: dict[str, Any] = {}
    for text in texts:
        camera, equals, value = text.rpartition("=")
        add_once(found, camera if equals else "", value, option)
    if "" in found and len(found) > 1:
        raise typer.BadParameter("names cameras and all cameras; name each", param_hint=option)
    by_camera = {name: resize_of(value, options, option) for name, value in found.items()}
    return by_camera.get("", by_camera)
