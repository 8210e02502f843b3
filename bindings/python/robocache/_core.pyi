# The extension that SWIG generates from the C headers.
from typing import Any

def __getattr__(name: str) -> Any: ...
