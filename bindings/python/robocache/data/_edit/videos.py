"""The videos of an edited data set: whole files, parts that are copied, and parts encoded again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

from .._errors import FormatError
from .._formats.lerobot.places import CHUNK
from .._formats.lerobot.stored_statistics import DataSet
from .._write import video
from .choices import Changes, Cut


class Videos:
    """Writes the videos of each camera."""

    def __init__(
        self,
        sets: Sequence[DataSet],
        cuts: Sequence[Cut],
        rate: float,
        path: Callable[[str, int], str],
        changes: Changes,
        notes: list[str],
    ) -> None:
        self.sets, self.cuts, self.rate, self.path, self.notes = sets, cuts, rate, path, notes
        self.changes = changes

    def require(self, own: str) -> None:
        """Require that the video of each episode exists, before anything is written."""
        for cut in self.cuts:
            self._place(cut, own)

    def write(self, name: str, own: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write the files of a camera.

        Returns
        -------
        dict
            Its columns of meta/episodes.
        dict
            The facts about the videos if all were encoded again; empty else.
        """
        import numpy as np

        files: dict[tuple[int, str], int] = {}  # files that are copied whole
        resize = self.changes.resizes.get(own)
        whole = self._whole_files(own) if resize is None else set()
        number = again = 0
        places = []
        for cut in self.cuts:
            source, begin = self._place(cut, own)
            key = (cut.source, source)
            if key in whole:
                if key not in files:
                    shutil.copyfile(source, self.path(name, number))
                    files[key], number = number, number + 1
                places.append((files[key], begin))
                continue
            target = self.path(name, number)
            first = begin + cut.begin / self.rate
            if resize is not None or not video.copy_part(source, target, first, cut.rows):
                self._encode(source, target, first, cut, own)
                again += 1
            places.append((number, 0.0))
            number += 1
        if resize is not None:
            self.notes.append(f"{name}: resized by {resize}, and encoded again")
        elif again:
            text = f"{name}: {again} of {len(self.cuts)} videos were encoded again, since no "
            self.notes.append(f"{text}keyframe is where they begin")
        numbers = np.array([place for place, _ in places], np.int64)
        begins = np.array([begin for _, begin in places])
        columns = {
            f"videos/{name}/chunk_index": numbers // CHUNK,
            f"videos/{name}/file_index": numbers % CHUNK,
            f"videos/{name}/from_timestamp": begins,
            f"videos/{name}/to_timestamp": begins
            + np.array([cut.rows for cut in self.cuts]) / self.rate,
        }
        facts = video.facts_of(self.path(name, 0)) if again == len(self.cuts) else {}
        return columns, facts

    def _place(self, cut: Cut, own: str) -> tuple[str, float]:
        """Return the file of an episode, and the time at which it begins there."""
        each = self.sets[cut.source]
        name = each.plan.video_name(own, cut.episode)
        if name is None:
            place = f"episode {each.plan.numbers[cut.episode]}"
            raise FormatError(each.info.path, place, f"has no video of {own}")
        if not each.info.folder.has(name):
            text = f"is missing; remove={[own]} removes this camera"
            raise FormatError(each.info.folder.path, name, text)
        begin = each.plan.videos[own][2][cut.episode] if each.info.is_v3 else 0.0
        return each.info.folder.file(name), float(begin)

    def _whole_files(self, own: str) -> set[tuple[int, str]]:
        """Return the files whose episodes are all kept, once and whole."""
        kept: dict[tuple[int, str], list[Cut]] = {}
        for cut in self.cuts:
            kept.setdefault((cut.source, self._place(cut, own)[0]), []).append(cut)
        held: dict[tuple[int, str], int] = {}
        for s in {cut.source for cut in self.cuts}:
            each = self.sets[s]
            for e, length in enumerate(each.plan.lengths.tolist()):
                probe = Cut(0, s, e, 0, length, length)
                key = (s, self._place(probe, own)[0])
                held[key] = held.get(key, 0) + 1
        return {
            key
            for key, cuts in kept.items()
            if len(cuts) == held[key] == len({cut.episode for cut in cuts})
            and all(cut.is_whole for cut in cuts)
        }

    def _encode(self, source: str, target: str, first: float, cut: Cut, own: str) -> None:
        writer = video.Writer(target, self.rate, self.changes.lossless)
        resize = self.changes.resizes.get(own)
        count = 0
        try:
            for _, image in video.frames(source, first):
                if count == cut.rows:
                    break
                writer.add(image if resize is None else resize(image))
                count += 1
            writer.close()
        except BaseException:
            writer.abandon()
            raise
        if count != cut.rows:
            numbers = self.sets[cut.source].plan.numbers
            text = f"has {count} frames of {own}, expected {cut.rows}"
            raise FormatError(source, f"episode {numbers[cut.episode]}", text)
        if not os.path.getsize(target):
            raise FormatError(source, own, "could not be encoded")
