# What SWIG makes of the structs of the C headers: checked there.
from typing import Any

def __getattr__(name: str) -> Any: ...
