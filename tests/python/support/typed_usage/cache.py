import datetime
from pathlib import Path
from typing import Optional

from typing_extensions import assert_type

import robocache as rbc


def cache(path: Path) -> None:
    made = rbc.Cache([path, "mine"], max_bytes="500GB", max_age=datetime.timedelta(days=30))
    assert_type(made.last_miss, Optional[str])
    assert_type(rbc.data.open_episodes(path, cache=made, identity="content"), rbc.Episodes)
    assert_type(rbc.data.align(rbc.data.open_recording(path), 20, cache=made), rbc.Episodes)
    assert_type(made.prune(dry_run=True).num_removed, int)
    assert_type(made.items()[0].key, bytes)

    rbc.Cache(path, size="500GB")  # type: ignore
    rbc.data.open_episodes(path, cache=str(path))  # type: ignore
