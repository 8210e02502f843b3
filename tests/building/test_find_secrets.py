"""scripts/find_secrets.py finds what detect-secrets finds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("detect_secrets", reason="make lint installs detect-secrets")

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "find_secrets.py"
# In parts, so that this file is not one that has secrets.
SECRETS = {
    "key.py": "KEY = 'AKIA" + "IOSFODNN7ABCDEFG'\n",
    "key.pem": "-----BEGIN RSA" + " PRIVATE KEY-----\nMIIE\n",
    "word.py": "x = 1\npass" + "word = 'correct horse battery'\n",
    "entropy.c": 'const char* k = "c3VwZXIg' + 'bG9uZyBzdHJpbmcgc2hvdWxkIGNhdXNlIGVub3VnaA";\n',
    "settings.yaml": "a: 1\nsec" + "ret: c3VwZXIgbG9uZyBzdHJpbmcgc2hvdWxk\n",
    "url.md": "text\nhttps://user:hunter2" + "hunter2@host.example.com/\n",
}


def run(program, *files):
    return subprocess.run(
        [*program, *map(str, files)], capture_output=True, encoding="utf-8", timeout=120
    )


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found(tmp_path, name):
    (tmp_path / name).write_text("# other lines\n\n" + SECRETS[name] + "end\n")
    (tmp_path / "clean.py").write_text("word = 'another'\n")
    found = run([sys.executable, SCRIPT], tmp_path / name, tmp_path / "clean.py")
    assert found.returncode == 1 and name in found.stdout, found
    hook = [sys.executable, "-m", "detect_secrets.pre_commit_hook"]
    assert run(hook, tmp_path / name, tmp_path / "clean.py").stdout == found.stdout


def test_files_without_secrets(tmp_path):
    (tmp_path / "clean.py").write_text("word = 'another'\n")
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    found = run([sys.executable, SCRIPT], tmp_path / "clean.py", tmp_path / "bytes")
    assert found.returncode == 0 and found.stdout == "", found
