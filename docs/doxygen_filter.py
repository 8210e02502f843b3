"""Print a header with its plain comments as Doxygen's, so that the headers need no marks.

A comment above a declaration describes it, one after a field describes the field, and one above
several macros is the heading of their group. Indented lines keep their layout.
"""

import re
import sys

RULE = re.compile(r"(/\*|//) -{4}")  # ---- a heading between parts ----
CONTAINER = re.compile(r"(class|struct|enum|typedef) .*{$")
TRAILING = {"/* ": re.compile(r"(\S\s*)/\* "), "// ": re.compile(r"^(\s*[^/\s][^/]*  )// ")}


def comment_at(lines, at, in_container):
    """The lines of the comment that begins at a line, and where it ends; None if none does."""
    end = at + 1
    if RULE.match(lines[at]):
        return None, end
    if lines[at].startswith("/*"):
        while "*/" not in lines[end - 1]:
            end += 1
        text = "\n".join(lines[at:end])[2:].rpartition("*/")[0].strip("\n").rstrip()
        return [re.sub(r"^ (\* ?)?", "", line) for line in text.split("\n")], end
    if re.match(r" {0,2}// " if in_container else "// ", lines[at]):
        while re.match(r" *//", lines[end]):
            end += 1
        return [re.sub(r"^ *// ?", "", line) for line in lines[at:end]], end
    return None, end


def laid_out(text):
    """The lines of a comment without the license, and indented lines marked as verbatim."""
    indented = False
    for line in text:
        if "SPDX-License-Identifier" in line:
            line = line.partition("SPDX")[0]
        if line.strip() and indented != line.startswith("  "):
            indented = not indented
            yield "@verbatim" if indented else "@endverbatim"
        # Else " .. " ends the first sentence.
        yield line if indented else line.replace(" .. ", " ..&nbsp;")
    if indented:
        yield "@endverbatim"


def converted(lines, title):
    at, first, in_container, macros = 0, True, False, 0
    while at < len(lines):
        line = lines[at]
        text, end = comment_at(lines, at, in_container)
        if text is not None and (first or lines[end].strip()):
            below = 0
            while lines[end + below].startswith("#define"):
                below += 1
            if below > 1:
                macros = below
                yield f"/** @name {' '.join(text)} */\n/** @{{ */"
            else:
                yield f"/** {title}" if first else "/**"
                yield from laid_out(text)
                yield "*/"
            at, first = end, False
            continue
        if CONTAINER.match(line):
            in_container = True
        elif line.startswith("}"):
            in_container = False
        if in_container or line.startswith("#define"):
            line = TRAILING["/* "].sub(r"\1/**< ", line, count=1)
            line = TRAILING["// "].sub(r"\1///< ", line, count=1)
        yield line
        if macros:
            macros -= 1
            if not macros:
                yield "/** @} */"
        at += 1


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print("\n".join(converted(file.read().split("\n"), "@file")))
