"""``robocache images``: pictures and cameras in another size, and a sheet that compares them."""

import os
from pathlib import Path
from typing import Annotated, Any, Optional, Union

import typer

from .._files.atomic_write import written_beside
from .._files.overwrite import lies_in
from .._printable import plural
from ..data import convert, edit
from ..data._contact_sheet import SUFFIXES, Pair, contents
from ..data._formats.lerobot.lerobot import sniff
from ..data._formats.registry import FORMATS, format_of
from ..data._image_source import LeRobotCameras, PictureCameras, cameras_of
from ..data._picture_folder import (
    KINDS,
    Pictures,
    pictures_in,
    samples_of,
    spread,
    write_resized,
)
from ..data._write.resize import Resize, resizes_of
from . import _display as show
from ._common import AsJson, Failure, FollowLinks, Fps, Overwrite, check_kind, open_data
from ._images import Filter, Fit, Lossless, Rule, how, resize_of
from ._outputs import check_output


def images(
    path: Annotated[
        Path,
        typer.Argument(
            help="A folder of PNG and JPEG pictures, one picture, or a data set of LeRobot, "
            "RLDS, Zarr or HDF5.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Optional[Path],
        typer.Option("--output", "-o", help="Where to write; without it, only --sheet."),
    ] = None,
    size: Annotated[
        Optional[str],
        typer.Option(help="The new size.", metavar="WIDTHxHEIGHT"),
    ] = None,
    preset: Annotated[
        Optional[str],
        typer.Option(
            help="Resize and crop as a project does, such as openpi, instead of --size.",
            metavar="NAME",
        ),
    ] = None,
    rule: Rule = None,
    filter: Filter = None,  # noqa: A002
    fit: Fit = None,
    camera: Annotated[
        Optional[list[str]],
        typer.Option(help="Only this camera of a data set. Repeatable.", metavar="NAME"),
    ] = None,
    format: Annotated[
        Optional[str],
        typer.Option(help="Of pictures: png or jpeg; default: png.", metavar="NAME"),
    ] = None,
    lossless: Lossless = False,
    sheet: Annotated[
        Optional[Path],
        typer.Option(
            help="Write a contact sheet, frames before and after: .html or .png.", metavar="FILE"
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="Frames on the sheet.", min=1, max=64)] = 6,
    fps: Fps = None,
    overwrite: Overwrite = False,
    follow_links: FollowLinks = False,
    as_json: AsJson = False,
) -> None:
    """Resize pictures or the cameras of a data set, with the bits of Pillow, torchvision or OpenCV.

    A folder of pictures becomes a folder of PNG files with the same names. A data set becomes a
    LeRobot data set with the same rows, or another one by the suffix, such as .zarr or .hdf5. The
    orientation in EXIF is not applied.
    """
    resize = _resize(size, preset, how(rule, filter, fit))
    if output is None and sheet is None:
        raise typer.BadParameter("give --output, --sheet, or both", param_hint="--output")
    if format is not None and format not in KINDS:
        raise typer.BadParameter(f"{format!r}: choose png or jpeg", param_hint="--format")
    if sheet is not None and sheet.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(f"{sheet}: expected .html or .png", param_hint="--sheet")
    check_kind(path)
    if not path.exists():
        raise Failure(f"{path}: does not exist")
    for option, target in (("--output", output), ("--sheet", sheet)):
        if target is not None:
            _require_apart(target, path, option)
            check_output(target, overwrite, [path], option)
    if output is not None and sheet is not None and output.absolute() == sheet.absolute():
        raise Failure(f"--sheet: {sheet} is the output too; choose another path")
    cameras = _cameras(path, fps, follow_links)
    if cameras is not None:
        if format is not None:
            raise Failure("--format works on pictures; this is a data set")
        resizes = _resizes(cameras, resize, camera)
        options = {"fps": fps, "overwrite": overwrite, "follow_links": follow_links}
        result = _data_set(cameras, output, resize, resizes, bool(camera), lossless, options)
        pairs = _pairs_of_cameras(cameras, resizes, samples) if sheet is not None else []
    else:
        for name, value in (("camera", camera), ("lossless", lossless or None), ("fps", fps)):
            if value is not None:
                raise Failure(f"--{name} works on data sets; this is not one")
        source = _pictures(path)
        result = _folder(source, output, resize, format, overwrite)
        pairs = _pairs_of_pictures(source, resize, samples) if sheet is not None else []
    if sheet is not None:
        title = f"{path.name or path}: {resize}"
        with written_beside(str(sheet), overwrite) as part, open(part, "xb") as file:
            file.write(contents(pairs, title, sheet.suffix.lower()))
    result = {"path": str(path), **result, "sheet": None if sheet is None else str(sheet)}
    if as_json:
        show.print_json(result)
    else:
        _print(result, resize)


def _resize(size: Optional[str], preset: Optional[str], options: dict[str, str]) -> Resize:
    if (size is None) == (preset is None):
        raise typer.BadParameter("give --size or --preset, one of the two", param_hint="--size")
    if preset is not None:
        if preset[:1].isdigit():
            raise typer.BadParameter(
                f"{preset!r} is a size; pass it as --size", param_hint="--preset"
            )
        return Resize(resize_of(preset, options, "--preset"), "preset")
    return Resize(resize_of(size, options, "--size"), "size")


def _require_apart(output: Path, source: Path, option: str) -> None:
    """Refuse an output inside the source, which the next run would read."""
    if source.is_dir() and lies_in(str(output), str(source)) and output != source:
        raise Failure(f"{option}: {output} is inside {source}, which is read; write elsewhere")


# ---- pictures -----------------------------------------------------------------------------------


def _pictures(path: Path) -> Pictures:
    names, _ = pictures_in(str(path))
    if names:
        return Pictures(str(path), names)
    reader = format_of(str(path), FORMATS)
    if reader is None:
        raise Failure(f"{path}: has no PNG or JPEG picture")
    raise Failure(
        f"{path}: expected pictures, or a data set of LeRobot, RLDS, Zarr or HDF5; robocache "
        "convert, with --image and --image-size, reads the cameras of recordings"
    )


def _folder(
    source: Pictures, output: Optional[Path], resize: Resize, kind: Optional[str], overwrite: bool
) -> dict[str, Any]:
    result: dict[str, Any] = {"output": None, "format": "pictures", "resize": resize.facts}
    result.update(frames=0, sizes=[], notes=[], left_out=[])
    if output is None:
        return result
    if kind is None:
        kind = "jpeg" if _is_jpeg(output) and not os.path.isdir(source.path) else "png"
    if not os.path.isdir(source.path) and output.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise Failure(f"--output: {output}: expected .png or .jpg, for one picture")
    done = write_resized(source, str(output), resize, kind, overwrite, None)
    result.update(output=str(output), frames=done.pictures)
    result["sizes"] = [
        {"from": list(old), "to": list(new), "frames": count}
        for (old, new), count in done.sizes.items()
    ]
    others = pictures_in(source.path)[1]
    result["left_out"] = [{"place": o.place, "reason": o.reason} for o in done.left_out]
    result["left_out"] += [{"place": name, "reason": "not a PNG or JPEG"} for name in others]
    return result


def _is_jpeg(output: Path) -> bool:
    return output.suffix.lower() in (".jpg", ".jpeg")


def _pairs_of_pictures(source: Pictures, resize: Resize, count: int) -> list[Pair]:
    return [Pair(name, frame, resize(frame)) for name, frame in samples_of(source, count)]


# ---- data sets ----------------------------------------------------------------------------------


def _cameras(
    path: Path, fps: Optional[float], follow_links: bool
) -> Optional[Union[LeRobotCameras, PictureCameras]]:
    """Return the cameras of a data set; None for pictures."""
    if sniff(str(path)):
        cameras = cameras_of(str(path), None, follow_links)
    else:
        reader = format_of(str(path), FORMATS)
        if reader is None or not reader.__name__.endswith((".zarr", ".rlds", ".hdf5")):
            return None
        cameras = cameras_of(
            str(path), open_data(path, fps=fps, follow_links=follow_links), follow_links
        )
    if cameras is None or not cameras.names:
        raise Failure(f"{path}: the data set has no camera that can be read")
    return cameras


def _resizes(cameras: Any, resize: Resize, names: Optional[list[str]]) -> dict[str, Resize]:
    argument: Any = dict.fromkeys(names, resize.argument) if names else resize.argument
    return resizes_of(argument, cameras.names, "--camera" if names else "--size")


def _data_set(
    cameras: Any,
    output: Optional[Path],
    resize: Resize,
    resizes: dict[str, Resize],
    some: bool,
    lossless: bool,
    options: dict[str, Any],
) -> dict[str, Any]:
    sizes = [_size_of(cameras, name, camera_resize) for name, camera_resize in resizes.items()]
    result: dict[str, Any] = {"output": None, "format": None, "resize": resize.facts}
    result.update(frames=0, sizes=sizes, notes=[], left_out=[])
    if output is None:
        return result
    is_edit = isinstance(cameras, LeRobotCameras) and not output.suffix
    if not is_edit and (lossless or some):
        option = "--lossless" if lossless else "--camera"
        raise Failure(f"{option} works from LeRobot to LeRobot, whose name has no suffix")
    if not output.suffix and not lossless:
        _require_even(cameras, sizes, is_edit)
    fps = options.pop("fps")
    if is_edit:
        arguments = {name: own.argument for name, own in resizes.items()}
        edited = edit(cameras.path, output, resize=arguments, lossless=lossless, **options)
        kind, facts = "lerobot", edited.to_dict()
    else:
        conversion: Any = convert(
            cameras.path, output, image_size=resize.argument, fps=fps, **options
        )
        kind, facts = conversion.format, conversion.to_dict()
    frames = sum(cameras.lengths) * len(resizes)
    result.update(output=str(output), format=kind, frames=frames)
    result.update(notes=facts["notes"], left_out=facts["left_out"])
    return result


def _require_even(cameras: Any, sizes: list[dict[str, Any]], is_edit: bool) -> None:
    """Refuse sizes that a video cannot have, in the words of this command."""
    for size in sizes:
        is_video = cameras.is_video(size["camera"]) if is_edit else True
        if is_video and (size["to"][0] % 2 or size["to"][1] % 2):
            remedy = ", or --lossless" if is_edit else ""
            raise Failure(
                f"--size: {size['camera']} would have {_pixels(size['to'])} pixels, but videos "
                f"need even numbers; choose another size{remedy}"
            )


def _size_of(cameras: Any, name: str, resize: Resize) -> dict[str, Any]:
    first = next((e for e, rows in enumerate(cameras.lengths) if rows), None)
    if first is None:
        raise Failure(f"{cameras.path}: has no frames")
    (frame,) = cameras.frames(name, [(first, 0)])
    height, width = frame.shape[:2]
    return {"camera": name, "from": [height, width], "to": list(resize.size_of(height, width))}


def _pairs_of_cameras(cameras: Any, resizes: dict[str, Resize], count: int) -> list[Pair]:
    """Return frames of all cameras: the middle ones of episodes that are evenly apart."""
    pairs = []
    for camera, resize in resizes.items():
        full = [e for e, rows in enumerate(cameras.lengths) if rows]
        episodes = spread(full, max(count // len(resizes), 1))
        places = [(e, cameras.lengths[e] // 2) for e in episodes]
        for (episode, row), frame in zip(places, cameras.frames(camera, places)):
            name = f"{camera}, episode {episode}, row {row}"
            pairs.append(Pair(name, frame, resize(frame)))
    return pairs


# ---- output -------------------------------------------------------------------------------------


def _print(result: dict[str, Any], resize: Resize) -> None:
    out = show.Page()
    rows = [
        [
            size.get("camera", plural(size.get("frames", 0), "picture")),
            _pixels(size["from"]),
            _pixels(size["to"]),
        ]
        for size in result["sizes"]
    ]
    if rows:
        out.print(show.table(("frames", "before", "after"), rows))
    omitted = [f"{left['place']}: {left['reason']}" for left in result["left_out"]]
    show.print_remarks(out, {"note": result["notes"], "omitted": omitted})
    if rows:
        out.print()
    if result["output"] is not None:
        frames = plural(result["frames"], "frame")
        out.print(f"wrote {result['output']}: {frames}, by {resize}", wrap=False)
    if result["sheet"] is not None:
        out.print(f"wrote {result['sheet']}", wrap=False)


def _pixels(size: list[int]) -> str:
    return f"{size[1]} x {size[0]}"
