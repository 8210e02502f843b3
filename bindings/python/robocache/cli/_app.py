"""The application: its commands, and how it starts and ends."""

import functools
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import cleandoc
from typing import Annotated, Any, Callable

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from .._printable import printable
from . import _common as common
from . import _help, cache, pipeline
from ._completion import complete_streams
from .cloud import cloud
from .convert import convert
from .demo_data import demo_data
from .edit import edit
from .formats import formats
from .images import images
from .info import info
from .inspect import inspect
from .report import report
from .resample import resample
from .stats import stats
from .sync import sync
from .voxelize import voxelize
from .windows import windows


class _Group(TyperGroup):
    """The commands; usage errors quote arguments escaped, since they may be file names."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _escaped_errors():
            return super().make_context(*args, **options)

    def invoke(self, context: Any) -> Any:
        with _escaped_errors():
            return super().invoke(context)

    def get_help(self, context: Any) -> str:
        commands = {name: command for name, (command, _) in COMMANDS.items()}
        return _help.group_help(app.info.help or "", commands, _options)

    def get_usage(self, context: Any) -> str:
        return f"Usage: {_help.GROUP_USAGE}"


class _Command(TyperCommand):
    """A command whose help has the same words with every release of typer."""

    def get_help(self, context: Any) -> str:
        command, example = COMMANDS[self.name or ""]
        return _help.command_help(self.name or "", command, example)

    def get_usage(self, context: Any) -> str:
        command, _ = COMMANDS[self.name or ""]
        return f"Usage: {_help.usage(self.name or '', _help.parameters(command))}"


class _GroupedCommand(_Command):
    """A command of a group, such as ``robocache pipeline init``."""

    group = ""

    def get_help(self, context: Any) -> str:
        command, example = COMMANDS[f"{self.group} {self.name}"]
        return _help.command_help(f"{self.group} {self.name}", command, example)

    def get_usage(self, context: Any) -> str:
        command, _ = COMMANDS[f"{self.group} {self.name}"]
        return f"Usage: {_help.usage(f'{self.group} {self.name}', _help.parameters(command))}"


class _SubGroup(TyperGroup):
    """A group of commands, such as ``robocache pipeline``."""

    def get_help(self, context: Any) -> str:
        begin = f"{self.name} "
        own = {n.removeprefix(begin): c for n, (c, _) in COMMANDS.items() if n.startswith(begin)}
        return _help.subgroup_help(self.name or "", GROUPS[self.name or ""], own)

    def get_usage(self, context: Any) -> str:
        return f"Usage: robocache {self.name} COMMAND ..."


class _Inspect(_Command):
    """Let ``--check`` take an optional value after an equals sign."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        args = [f"{a}=warnings" if a == "--check" and i < end else a for i, a in enumerate(args)]
        return super().parse_args(context, args)


@contextmanager
def _escaped_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        is_help = type(error).__name__ == "NoArgsIsHelpError"  # its lines are not escaped
        if hasattr(error, "format_message") and not is_help:
            text = printable(error.format_message())
            error.format_message = lambda: text
        raise


app = typer.Typer(
    name="robocache",
    cls=_Group,
    help="Robot recordings and data sets: find what is wrong with them, compute exact statistics, "
    "and make arrays for a model.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"robocache {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error; works anywhere on the line."),
    ] = False,
) -> None:
    common.debug = common.debug or debug


def _paragraphs(command: Callable[..., None]) -> str:
    """Return a docstring with one line per paragraph; the help wraps it to the terminal."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", cleandoc(command.__doc__ or ""))


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "inspect": (inspect, "robocache inspect flight.mcap --check"),
    "sync": (sync, "robocache sync drive.bag --a /imu/data --b /odometry"),
    "stats": (stats, "robocache stats my_dataset --check"),
    "resample": (resample, "robocache resample flight.mcap --rate 50 --max-gap 0.1 -o aligned.npz"),
    "convert": (
        convert,
        "robocache convert bags -o so101 --rate 20 --state /joint_states:position --action "
        "/commands --image front=/camera/image_raw",
    ),
    "edit": (edit, "robocache edit so101 -o so101_clean --drop 3,7 --trim '0-2=10:'"),
    "images": (images, "robocache images so101 -o so101_224 --preset openpi --sheet sheet.html"),
    "windows": (windows, "robocache windows my_dataset --steps 50 --relative --bench"),
    "voxelize": (voxelize, "robocache voxelize sweeps --voxel-size 0.2 -o voxels.npz"),
    "cloud": (cloud, "robocache cloud depth --intrinsics k.json --points 1024 -o clouds"),
    "pipeline init": (pipeline.init, "robocache pipeline init bag -o robocache_pipeline.json"),
    "pipeline check": (pipeline.check, "robocache pipeline check checkpoint --replay flight.mcap"),
    "pipeline diff": (pipeline.diff, "robocache pipeline diff checkpoint robot.json"),
    "cache build": (cache.build, "robocache cache build so101 --rate 30"),
    "cache info": (cache.info, "robocache cache info"),
    "cache verify": (cache.verify, "robocache cache verify"),
    "cache prune": (cache.prune, "robocache cache prune --max-size 200GB --older 30d --dry-run"),
    "report": (report, "robocache report flight.mcap --html flight.html"),
    "demo-data": (demo_data, "robocache demo-data arm"),
    "formats": (formats, "robocache formats lerobot"),
    "info": (info, "robocache info"),
}

complete_streams(command for command, _ in COMMANDS.values())

GROUPS = {
    "pipeline": "Make, check and compare pipeline files: one description for training and robot.",
    "cache": "Fill, list, verify and clear the cache, which processes share.",
}
_groups = {
    name: typer.Typer(
        name=name,
        cls=_SubGroup,
        help=text,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
    )
    for name, text in GROUPS.items()
}


def _class_of(name: str, command: Callable[..., None]) -> type[TyperCommand]:
    group = name.rpartition(" ")[0]
    if group:
        return type("_Grouped", (_GroupedCommand,), {"group": group})
    return _Inspect if command is inspect else _Command


for _name, (_command, _) in COMMANDS.items():
    _group, _, _last = _name.rpartition(" ")
    _place = _groups[_group] if _group else app
    _add = _place.command(_last, cls=_class_of(_name, _command), help=_paragraphs(_command))
    _add(common.reported(_command))
for _typer in _groups.values():
    app.add_typer(_typer)


@functools.cache
def _built() -> Any:
    """Return the commands, which take Typer longer to build than a short command takes to run."""
    return typer.main.get_command(app)


def _open_closed_streams() -> None:
    """Open closed standard streams, so that no output file gets the number of stderr."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    _open_closed_streams()
    remaining = list(arguments)
    end_of_options = remaining.index("--") if "--" in remaining else len(remaining)
    common.debug = "--debug" in remaining[:end_of_options]
    remaining = [a for i, a in enumerate(remaining) if a != "--debug" or i > end_of_options]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # escape names that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        signal.signal(signal.SIGTERM, _end)
    except ValueError:  # not in the main thread
        pass
    try:
        _built()(remaining, prog_name="robocache")
        code: Any = 0
    except SystemExit as end:
        code = end.code
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code if isinstance(code, int) else int(code is not None)


def _end(number: int, frame: Any) -> None:
    """Exit in the normal way, which removes partly written outputs."""
    raise SystemExit(128 + number)
