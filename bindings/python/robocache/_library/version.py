"""The version of the library that is loaded."""

from __future__ import annotations

from .. import _core

_release, abi_version = _core.rbc_get_version()
version = f"{_release // 10000}.{_release // 100 % 100}.{_release % 100}"
