#!/usr/bin/env python3
"""Check that the documentation of another language has the comments of the C headers.

documentation_test.py HEADERS (RoboCache.java | RoboCache.xml)
"""

import html
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

OPERATIONS = ["Resample", "Fuse", "Voxelize", "VoxelizeSparse", "VoxelizeTsdf"]


def words(text):
    return " ".join(re.sub(r"^\s*(\*|///)", "", text, flags=re.MULTILINE).split())


def first_sentence(headers, operation):
    before = headers[: headers.index(f"RBC_API rbcStatus_t rbc{operation}(")]
    comment = words(before[before.rindex("/*") + 2 :])
    return comment.split(". ")[0]


def javadoc(source, operation):
    """Return the text of a function, and the texts of its arguments by name."""
    name = operation[0].lower() + operation[1:]
    (comment,) = re.findall(
        rf"/\*\*((?:(?!\*/).)*)\*/\s+public static void {name}\(", source, re.DOTALL
    )
    comment = html.unescape(words(comment))
    text, *arguments = comment.split(" @param ")
    return text, dict(argument.split(" ", 1) for argument in arguments)


def xml(source, operation):
    """Return the same for a method of Context."""
    root = ElementTree.fromstring(source)
    (member,) = (
        each
        for each in root.iter("member")
        if each.get("name").startswith(f"M:RoboCache.Context.{operation}(")
    )
    text = words(" ".join("".join(each.itertext()) for each in member if each.tag != "param"))
    return text, {each.get("name"): words(each.text) for each in member.findall("param")}


def main(folder, file):
    headers = "".join(path.read_text() for path in sorted(Path(folder).glob("*.h")))
    source = Path(file).read_text()
    read = javadoc if file.endswith(".java") else xml
    for operation in OPERATIONS:
        text, arguments = read(source, operation)
        sentence = first_sentence(headers, operation)
        assert text.startswith(sentence), (operation, sentence, text[:200])
        assert arguments, operation
    text, arguments = read(source, "Resample")
    assert "valid 1 if |q - t| <= tolerance; else" in text, text
    queries = "query_times" if read is javadoc else "queryTimes"
    assert arguments[queries].endswith("the dtype of times; in any order"), arguments


if __name__ == "__main__":
    main(*sys.argv[1:])
