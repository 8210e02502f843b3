# Classes that SWIG generates from the structs of the C headers.
from typing import Any

def __getattr__(name: str) -> Any: ...
