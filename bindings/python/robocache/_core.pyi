# The extension that SWIG makes of the C headers: checked there.
from typing import Any

def __getattr__(name: str) -> Any: ...
