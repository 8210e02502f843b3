#!/usr/bin/env python3
# ruff: noqa: E501 - a rule is a row of a table
"""Check the wording of messages, docstrings, documentation, comments and names in signatures.

usage: plain_english.py [--kind KIND]... [--rule NAME]... [--since REV] [--summary] [PATH]...
       plain_english.py --rules | --self-test

Without PATH, all files of the repository that git does not ignore are checked against LIMITS. The
findings of each kind that is over its limit are printed, then the counts by kind and by folder. With
PATH, files or folders, all findings are printed, and the limit is 0.

  --kind KIND   check only this kind; repeatable. The kinds are
                  message   string literals, echo and printf of shell scripts, help of make targets
                  doc       docstrings in Python
                  markdown  Markdown, without code blocks
                  header    comments in the public headers, include/robocache
                  comment   all other comments
                  name      functions, classes and parameters in CHECKED_NAMES: a table of bad names
  --rule NAME   check only this rule; repeatable
  --since REV   check only lines that were added or changed since the git revision REV
  --summary     print the counts only
  --rules       print each rule with an example and its correction
  --self-test   check each rule with its examples, and the parsers

Exit status: 0 within the limits, 1 over a limit, 2 wrong usage.

`plain: ok` in a comment allows everything on its line; on a line of its own, also on the next line.
`plain: ok RULE` allows only that rule. `plain: off` and `plain: on` enclose lines that are not checked.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import collections
import fnmatch
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

LIMITS = {"message": 0, "doc": 0, "markdown": 0, "header": 0, "comment": 300, "name": 0}
PROSE = ("message", "doc", "markdown", "header", "comment")
CHECKED_NAMES = ("bindings/python/robocache/", "src/", "include/", "kernels/")
# Frozen files, generated files, and text that others wrote.
EXCLUDED = ("*/golden/*", "*/headers_0_1/*", "*/recorded/*", "LICENSE", "LICENSES/*", "NOTICE",
            "*.hex", "*/plain_english.py", "*/test_plain_english.py")  # fmt: skip


class Rule(NamedTuple):
    name: str
    kinds: tuple[str, ...]
    pattern: str  # case is ignored, except within (?-i:...); ^ is the start of a block
    hint: str
    bad: str
    good: str


_START = ("doc", "comment", "header")
_UNIT = (
    r"(?:batch|block|bucket|call|channel|cloud|column|dtype|element|episode|feature|file|format|frame|group"
    r"|image|kernel|key|lane|launch|line|number|operation|point|query|row|sample|step|stream|test|thread"
    r"|track|value|vector|voxel|warp|window)"
)
_NOUNS = (
    r"(?:arrays?|bits|bools?|bytes|calls|counts?|floats?|frames?|hashes|launches|lines?|lists?|loads?|MB"
    r"|numbers?|points?|rows?|samples?|threads?|ticks?|values?|warps?)"
)
# fmt: off
RULES = [
    Rule("told", PROSE, r"(?<!tells )\btold\b(?! (?:to|you|me|us)\b)", "reported, named, recognized, known", "each format is told by its content", "each format is recognized by its content"),
    Rule("tells", PROSE, r"\btells? (?!you\b|me\b|us\b|users?\b|(?:the |your )?(?:caller|cmake|compiler|git|library|linker|nvcc|reader|server|user)s?\b)", "reports, returns, shows, lists; 'tell apart' is 'distinguish'", "what inspect tells of a recording", "what inspect reports about a recording"),
    Rule("knows", PROSE, r"\bknows? (?:of|no|nothing)\b", "has no, does not support, does not use", "subtract knows of no rotations", "subtract does not support rotations"),
    Rule("nobody", PROSE, r"\b(?:nobody|somebody|anybody)\b", "name the caller or thread, or: is not used", "nobody waits for it", "no thread waits for it"),
    Rule("alone", PROSE, r"(?<!stand )(?<!stands )(?<!standing )(?<!let )(?<!leave )(?<!leaves )(?<!left )(?<!run )(?<!runs )(?<!used )\balone\b", "only", "the index alone is in memory", "only the index is in memory"),
    Rule("as-it-is", PROSE, r"\bas (?:it|they) (?:is|are|was|were)\b(?! (?:\w+(?:ed|en|ing)|built|cut|given|put|read|sent|set)\b)", "unchanged; without a copy", "episodes are taken as they are", "episodes are used unchanged, as they are read"),
    Rule("as-has-it", PROSE, r"\bas (?:[\w.'()`]+ ){1,4}(?:has|have|had) (?:it|them|that)\b", "as in X; follows X", "as anchorOf() has it", "as in anchorOf()"),
    Rule("no-but", PROSE, r"\b(?:is|are|there is|there are) no [^.;:]{1,40}?, but (?:an?|the|of|in|for|with|'|X)\b|\b(?:has|have|holds?) no [^.;:]{1,40}?, but (?:an?|the)\b(?! \w+ (?:is|are|has)\b)", "expected X, got Y", "is no HDF5 file, but a zip archive", "expected an HDF5 file, got a zip archive; it has no unit, but times is ms"),
    Rule("is-no", PROSE, r"(?<!there )(?<!that )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|\w+er\b|need\b|such\b|one\b|way\b|other\b)\w", "is not an X", "an argument is no array", "an argument is not an array"),
    Rule("of-no", PROSE, r"\bof no\b(?! (?:use|interest|importance)\b)", "without X; unknown X; not an X", "is of no format that is known", "its format is not supported"),
    Rule("none-of", PROSE, r"\b(?:is|are|was|were) none of (?:its|their|them|the|these|those)\b", "is not one of; does not belong to", "NaN is none of them", "NaN is not counted"),
    Rule("nothing-but", PROSE, r"\bnothing but\b", "only", "reads nothing but the header", "reads only the header"),
    Rule("but-for", PROSE, r"(?<!not )\bbut for\b(?! (?:more|each|all|every|example)\b)", "except, except for", "the same, but for the mask", "the same, except for the mask"),
    Rule("all-but", PROSE, r"\ball but\b", "all except", "all but the last two", "all except the last two"),
    Rule("in-place-of", PROSE, r"\bin place of\b", "instead of", "one launch in place of three", "one launch instead of three"),
    Rule("beside", PROSE, r"\bbeside\b", "next to, with, in addition to", "an int64 dtype beside float times", "an int64 dtype with float times"),
    Rule("behind", PROSE, r"\b(?:lies?|stands?|comes?|bytes?|elements?|channels?|rows?|zeros|memory|one|samples?|what is|just) behind\b", "after", "the channel behind the last one", "one past the last channel"),
    Rule("another-than", PROSE, r"\banother (?:\w+ )?than\b|\bother \w+ than (?:it|they|there|those)\b", "different from; not the one that", "has another dtype than it should", "has the wrong dtype"),
    Rule("those-of", PROSE, r"\b(?:is|are|was|were|be|but|than|and|or|has|have|holds?|in) those of\b(?! (?:us|you)\b)", "repeat the noun, or: equals, matches, comes from", "the bits are those of the CPU", "the bits match those of the CPU"),
    Rule("start-pronoun", (*_START, "message"), r"^(?-i:That|Those|Such|Whose|None) of\b|^(?-i:Those|Such) (?:that|which)\b", "name the thing", "Those that the call needs.", "Streams that the call needs."),
    Rule("start-that", _START, r"^(?-i:That) (?!costs?|does|is|makes?|takes?|was|way|would\b)", "begin with a verb: Check that ...", "That a path is a device.", "Check that a path is a device."),
    Rule("start-what", _START, r"^(?-i:What) (?!follows\b|if\b|to\b)", "name the thing: The fields that ..., Count ...", "What counts a column of a batch.", "The lengths of a batch's column."),
    Rule("start-which", _START, r"^(?-i:Which|Whose|How (?:far|long|many|much|often)) ", "The tracks that ..., Number of ..., Whether ...", "Which messages are of one channel.", "Mask of the messages of one channel."),
    Rule("start-preposition", ("doc",), r"^(?-i:Among|As|Behind|Beside|Between|By|Of|Onto|Out of|Than|To|Where) (?!default\b)", "begin with a verb or a noun", "Of a recording or episodes, in one pass.", "Statistics of a recording or episodes, in one pass."),
    Rule("per", PROSE, r"(?:\b(?:one|two|three|\d+)|(?:\b(?:one|two|three|few|many|more|most|of|some|\d+) " + _NOUNS + r")) an? " + _UNIT + r"\b(?! (?:can|does|has|holds|is|may|must|needs|takes|uses|wants|will)\b)", "per", "expected 3, one an episode", "expected 3, one per episode"),
    Rule("without-what", PROSE, r"\b(?:and|or|none|none,) without[.;,)]|; without,|\bdone without\b", "say without what", "times with a time zone and without,", "some times have a time zone and some do not"),
    Rule("is-of", PROSE, r"\b(?:is|are|was|were) of (?:all|an?|another|it|its|one|that|the|their|them|these|this|those|two)\b(?! (?:kind|length|order|same|size|type|use)\b)", "belongs to, has, covers, comes from", "these statistics are of all rows", "these statistics cover all rows"),
    Rule("of-which", PROSE, r"\bof (?:which|whom|whose)\b|, (?:after|among|before|between|by|for|from|to|with) (?:which|whom|whose)\b", "two sentences, or 'that' or 'where'", "a folder, of which the files are read", "a folder; its files are read"),
    Rule("is-to-be", PROSE, r"\b(?:is|are|was|were) to (?:be|have|hold|lie|say|stay)\b|\bnot to be (?:called|freed|read|used|written)\b", "must; should; will", "tensors are to be made by the other one", "the other one must make the tensors"),
    Rule("to-be-had", PROSE, r"\bto be had\b|\bis had\b", "is available; exists", "no GPU is to be had", "no GPU is available"),
    Rule("stands", PROSE, r"\bstands? (?:as|at|before|behind|below|beside|by|column|first|here|in(?! for\b)|last|on|once|row|side|there|where|above)\b", "is; is written; is stored", "K stands row by row", "K is in row-major order, and stands for the camera"),
    Rule("lies", PROSE, r"\b(?:lie|lies|lay|lain|lying) (?:apart|around|as|at|behind|beside|close|elsewhere|further|here|later|next|one|side|so|there|where|in(?! (?:the|its|their) (?:\w+ )?(?:half|interval|range|samples)| \[| \()|on(?! (?:an?|the|its) (?:\w+ )?(?:axis|boundary|circle|edge|face|line|plane|ray|sphere)\b))\b", "is; is stored in", "each value lies in a bucket", "each value is in a bucket, and lies in the range"),
    Rule("so-many", PROSE, r"\bso (?:many|much)\b(?! (?:as|so|that|\w+er)\b)", "name the number: n calls, at most n", "a round of so many calls", "a round of n calls"),
    Rule("some-number", PROSE, r"\bsome \d[\d,.]*\b", "about", "some 28 instructions", "about 28 instructions"),
    Rule("length-of-time", PROSE, r"\b(?:lengths?|spans?) of time\b", "duration", "expected a length of time", "expected a duration"),
    Rule("asked", PROSE, r"\b(?:is|are|was|were|if|when|once|so|unless|where) (?:they are )?asked\b|\basked for\b", "requested; set; if return_mask is True", "if they are asked for", "if requested"),
    Rule("such-one", PROSE, r"\bsuch (?:a one|ones?|are|is)\b(?! as\b)|\b(?:by|for|in|of|with) such(?=[.,;:)]|$)", "repeat the noun", "filled with such a one", "filled with a zero quaternion"),
    Rule("becomes-of", PROSE, r"\b(?:becomes?|became|comes?|came|makes?|made) of (?:an?|channels|it|its|that|the|them|this)\b", "how X changes; the result of; built from", "what becomes of them", "how they are transformed"),
    Rule("left-out", PROSE, r"\b(?:leave|leaves?|leaving|left)(?: (?:it|them|\w+))? out\b(?! (?:of memory|on)\b)", "skipped, omitted, excluded; remove", "rows with a NaN are left out", "rows with a NaN are skipped"),
    Rule("of-its-own", PROSE, r"\b(?:an?|the) (?:\w+ ){1,2}of (?:its|one's|their) own\b", "its own X; a separate X", "each size in a folder of its own", "each size in a separate folder"),
    Rule("by-itself", PROSE, r"\b(?:by|channels?|each|episode|every \w+|for|group|one|rows?) (?:by|for) (?:itself|themselves)\b", "separately; on its own", "each row by itself", "each row separately"),
    Rule("mend", PROSE, r"\bmend(?:s|ed|ing)?\b", "fix, correct", "what was mended", "what was fixed"),
    Rule("archaic", PROSE, r"\b(?:amongst|foretell?s?|foretold|herein|hitherto|lest|likewise|naught|nought|thence|thereby|therein|thereof|thereupon|therewith|whence|wherein|whereof|whilst)\b", "the everyday word", "likewise for CUDA", "also for CUDA"),
    Rule("whatever", PROSE, r"\bwhatever\b", "for any X; regardless of X", "whatever the workspace holds", "regardless of the workspace's contents"),
    Rule("where-one", PROSE, r"\b(?:if|where|whether) there (?:are|is|was) (?:any|none|one|some|such)\b(?! \w+ing\b)", "if a GPU is found; if any", "the mask, where there is one", "the mask, if any"),
    Rule("less-that", PROSE, r"\bless (?:the|that|those|what)\b(?! (?:better|more)\b)", "minus", "each channel less that of the state", "each channel minus the state's"),
    Rule("the-like", PROSE, r"\b(?:and|or) the like\b", "and similar errors; for example", "a CUDA error, and the like", "for example a CUDA error"),
    Rule("ever-new", PROSE, r"\bever (?:another|more|new|other)\b", "a new one each time", "batches of ever another shape", "batches whose shape changes each time"),
    Rule("thinned", PROSE, r"\bthin(?:s|ned|ning)? out\b", "downsampled", "thinned out", "downsampled"),
    Rule("gives-back", PROSE, r"\bgiv(?:e|en|es|ing) back\b", "returns; frees (memory)", "memory that is given back", "memory that is freed"),
    Rule("taken-for", PROSE, r"\b(?:are|be|is|never|not|one|was|were) taken for\b|\btakes? (?:a \w+|it|one|them|this) for\b", "treated as; misread as", "the camera is taken for a pinhole", "the camera is treated as a pinhole"),
    Rule("undone", PROSE, r"\bundone\b", "removed; reverted; not applied", "distortion is not undone", "distortion is not removed"),
    Rule("in-words", PROSE, r"(?<!length )(?<!size )(?<!offset )(?<!stride )\bin words\b(?! of\b)|\bwords that (?:lead|name|say)\b", "as text; a message that", "the reason in words", "a message with the reason"),
    Rule("is-given-but", ("message",), r"^(?:[\w.\[\]{}!:]+: )?(?:is|are) given, but\b", "X needs Y; remove X or add Y", "offset: is given, but the stream has no times", "offset needs a stream with times"),
    Rule("two-negatives", PROSE, r"\b(?:none|not one|no one) of (?:them|these|those|which)\b.{0,40}\b(?:never|no|not|without)\b", "say it positively", "none of them is not read", "all of them are read"),
    Rule("name-word", ("name",), r"^_*(?:beside|given|of|tell|which)$", "a noun: array, values, index, indices, like", "given", "values"),
    Rule("name-told", ("name",), r"(?:^|_)(?:fore|re|un)?(?:tells?|told)(?:_|$)|(?:^|[a-z0-9])(?:Tells?|Told)(?=[A-Z_]|$)|^_*(?:tells?|told)(?=[A-Z])", "metadata, range_flags, report, check", "tell_count", "check_count"),
]
# fmt: on
BY_NAME = {rule.name: rule for rule in RULES}
COMPILED = [
    (rule, re.compile(rule.pattern, 0 if rule.kinds == ("name",) else re.I)) for rule in RULES
]
RULES_OF = {kind: [each for each in COMPILED if kind in each[0].kinds] for kind in LIMITS}
C_LIKE = (".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh", ".i", ".java", ".cs")
HASH = (".sh", ".cmake", ".cmake.in", ".yml", ".yaml", ".toml")
HASH_NAMES = ("Makefile", "CMakeLists.txt", "Dockerfile", "run")
ALLOW = re.compile(r"plain: ok\b(?! \w+ (?:is|are)\b)(?: +([a-z][\w-]*))?")
SWITCH = re.compile(r"plain: (off|on)\b")


class Block:
    """Consecutive lines of one kind, as a single text that knows the line of each character."""

    def __init__(self, kind: str, lines: Iterable[tuple[int, str]]) -> None:
        self.kind, self.text = kind, ""
        self.numbers: list[int] = []
        self.starts: list[int] = []
        for number, line in lines:
            self.starts.append(len(self.text))
            self.numbers.append(number)
            self.text += line.strip() + " "
        self.text = self.text.rstrip()

    def line_at(self, position: int) -> int:
        return self.numbers[bisect.bisect_right(self.starts, position) - 1]


class Finding(NamedTuple):
    path: str
    line: int
    rule: Rule
    kind: str
    excerpt: str


def without_code(text: str) -> str:
    """Replace code in backquotes, targets of links and URLs by letters, as many as there were."""

    def fill(match: re.Match[str]) -> str:
        return "x" * len(match.group())

    text = re.sub(r"``[^`\n]+``|`[^`\n]+`", fill, text)
    return re.sub(r"(?<=\])\([^)\n]*\)|https?://\S+", fill, text)


def paragraphs(kind: str, lines: Iterable[tuple[int, str]]) -> list[Block]:
    """Split lines at lines that are empty or a ruler."""
    blocks: list[Block] = []
    current: list[tuple[int, str]] = []
    for number, line in [*lines, (0, "")]:
        if line.strip(" -=#*/+\t"):
            current.append((number, line))
        elif current:
            blocks.append(Block(kind, current))
            current = []
    return blocks


# Comments and strings; the tokenizer of Python takes ten times as long.
PYTHON_TOKEN = re.compile(
    r"#[^\n]*|\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.S,
)


def python_blocks(source: str) -> Iterator[Block]:
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Block("name", [(node.lineno, node.name)])
        elif isinstance(node, ast.arg):
            yield Block("name", [(node.lineno, node.arg)])
        elif isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "X" for p in node.values]
            yield Block("message", [(node.lineno, "".join(map(str, parts)))])
            nodes += [p.value for p in node.values if isinstance(p, ast.FormattedValue)]
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines = [(node.lineno + i, line) for i, line in enumerate(node.value.split("\n"))]
            if id(node) in docstrings:
                # Only the summary line must not begin with a preposition.
                first, *others = paragraphs("doc", lines) or [Block("doc", [])]
                yield first
                for block in others:
                    block.text = "  " + block.text
                    block.starts = [0] + [start + 2 for start in block.starts[1:]]
                    yield block
            else:
                lines = [(min(number, node.end_lineno or number), line) for number, line in lines]
                yield Block("message", lines)
        nodes += ast.iter_child_nodes(node)
    comments: list[tuple[int, str]] = []
    number = end = 0
    for match in PYTHON_TOKEN.finditer(source):
        number, end = number + source.count("\n", end, match.start()), match.start()
        if match.group()[0] != "#":
            continue
        begins = not source[source.rfind("\n", 0, end) + 1 : end].strip()
        if comments and not (begins and number + 1 == comments[-1][0] + 1):
            yield from paragraphs("comment", comments)
            comments = []
        comments.append((number + 1, match.group().lstrip("#!")))
    yield from paragraphs("comment", comments)


C_TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
C_NAME = re.compile(
    r"(?<![\w.])(?!(?:case|delete|else|goto|new|return|throw|typename)\b)[A-Za-z_][\w:]*(?:<[^<>;(){}]*>)?"
    r"(?:[ \n]*[&*]+[ \n]*|[ \n]+)(?:const[ \n]+)?([A-Za-z_]\w*)[ \n]*(?=[,)(])"
)


def c_blocks(source: str, comment: str = "comment") -> Iterator[Block]:
    comments: list[tuple[int, str]] = []
    strings: list[tuple[int, str]] = []
    code = list(source)
    end = column = 0
    for match in C_TOKEN.finditer(source):
        text, number = match.group(), source.count("\n", 0, match.start()) + 1
        code[match.start() : match.end()] = re.sub(r"[^\n]", " ", text)
        between, end = source[end : match.start()], match.end()
        begin = source.rfind("\n", 0, match.start()) + 1
        if between.strip() or text[0] != '"':
            yield from [Block("message", strings)] if strings else []
            strings = []
        continues = not between.strip() and between.count("\n") < 2
        if text[0] == "'":
            continue
        if text[0] == '"':
            if not source[begin : match.start()].lstrip().startswith("#include"):
                strings.append((number, re.sub(r"%[-\d.]*[a-z]+|\\[nt]", "X", text[1:-1])))
            continue
        if not (continues and match.start() - begin == column):
            yield from paragraphs(comment, comments)
            comments = []
        column = match.start() - begin
        if text.startswith("//"):
            comments.append((number, text.lstrip("/!<")))
        else:
            lines = enumerate(text[2:-2].split("\n"), number)
            comments += [(n, line.strip().lstrip("*!<")) for n, line in lines]
    yield from [Block("message", strings)] if strings else []
    yield from paragraphs(comment, comments)
    bare = "".join(code)
    for match in C_NAME.finditer(bare):
        yield Block("name", [(bare.count("\n", 0, match.start(1)) + 1, match.group(1))])


def markdown_blocks(source: str) -> Iterator[Block]:
    paragraph: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate([*source.split("\n"), ""], 1):
        marker = re.match(r"\s*(`{3,}|~{3,})", line)
        item = re.match(r"\s*(?:[-*+]|\d+\.|\||#+|>|:) ", line)
        if (marker or fence or item or not line.strip()) and paragraph:
            yield Block("markdown", paragraph)
            paragraph = []
        if marker and (not fence or marker[1].startswith(fence)):
            fence = "" if fence else marker[1]
        elif not fence and not line.lstrip().startswith((":class:", ":name:")):
            paragraph.append((number, line))


def hash_blocks(source: str) -> Iterator[Block]:
    comments: list[tuple[int, str]] = []
    for number, line in enumerate(source.split("\n"), 1):
        match = re.match(r"\s*#(?!!)(.*)|.*?\s## (.*)|.*\s# (.*)", line)
        if match and match[2]:
            yield Block("message", [(number, match[2])])
        elif match:
            if comments and number != comments[-1][0] + 1:
                yield from paragraphs("comment", comments)
                comments = []
            comments.append((number, match[1] or match[3] or ""))
        elif said := re.search(
            r"\b(?:echo|printf|message|option|fail|die)\b.*?[\"'](.*)[\"']", line
        ):
            yield Block("message", [(number, said[1])])
    yield from paragraphs("comment", comments)


def blocks_of(path: str, source: str) -> Iterable[Block]:
    name = os.path.basename(path)
    if name.endswith((".py", ".pyi")):
        return python_blocks(source)
    if name.endswith(C_LIKE):
        return c_blocks(source, "header" if path.startswith("include/robocache/") else "comment")
    if name.endswith(".md"):
        return markdown_blocks(source)
    return hash_blocks(source) if name.endswith(HASH) or name in HASH_NAMES else ()


def allowances(source: str) -> dict[int, set[str]]:
    """Return the rules that are allowed in each line; '*' stands for all of them."""
    allowed: dict[int, set[str]] = collections.defaultdict(set)
    off = False
    for number, line in enumerate(source.split("\n"), 1):
        if switch := SWITCH.search(line):
            off = switch[1] == "off"
        if off:
            allowed[number].add("*")
        if match := ALLOW.search(line):
            rule = match[1] if match[1] in BY_NAME else "*"
            allowed[number].add(rule)
            if re.match(r"\s*(?:#|//|/\*|<!--)", line):
                allowed[number + 1].add(rule)
    return allowed


def check(path: str, source: str) -> Iterator[Finding]:
    """Yield what RULES find in a file. `path` is relative to the root of the repository."""
    allowed = allowances(source)
    names = path.startswith(CHECKED_NAMES)
    try:
        blocks = list(blocks_of(path, source))
    except (SyntaxError, ValueError):
        return
    for block in blocks:
        if block.kind == "name" and not names:
            continue
        text = without_code(block.text)
        if block.kind != "name" and len(re.findall(r"[A-Za-z]{2,}", text)) < 2:
            continue
        for rule, pattern in RULES_OF[block.kind]:
            for match in pattern.finditer(text):
                line = block.line_at(match.start())
                if not allowed.get(line, set()) & {"*", rule.name}:
                    excerpt = block.text[max(0, match.start() - 30) : match.end() + 30]
                    yield Finding(path, line, rule, block.kind, " ".join(excerpt.split()))


def git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], capture_output=True, text=True)
    if run.returncode:
        print(f"plain_english.py: git {arguments[0]}: {run.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    return run.stdout


def added_lines(path: str, revision: str, last: int) -> set[int]:
    """Return the numbers, up to `last`, of the lines that a revision does not have."""
    if not git("ls-tree", revision, "--", path):
        return set(range(1, last + 1))
    lines: set[int] = set()
    for match in re.finditer(
        r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", git("diff", "-U0", revision, "--", path), re.M
    ):
        lines.update(range(int(match[1]), int(match[1]) + int(match[2] or 1)))
    return lines


def self_test() -> int:
    errors = []
    for rule, pattern in COMPILED:
        if not pattern.search(rule.bad):
            errors.append(f"{rule.name} does not match {rule.bad!r}")
        if pattern.search(rule.good):
            errors.append(f"{rule.name} matches {rule.good!r}")
    for path, source, expected in CASES:
        found = [f"{f.line} {f.kind} {f.rule.name}" for f in check(path, source)]
        if found != expected:
            errors.append(f"{path}: {source!r}: found {found}, expected {expected}")
    print("\n".join(errors) or f"{len(RULES)} rules and {len(CASES)} sources: as expected")
    return 1 if errors else 0


PACKAGE = CHECKED_NAMES[0]
# fmt: off
CASES = [
    ("a.py", '"""It is told.\n\n    Of what is alone."""\n', ["1 doc told", "3 doc alone"]),
    ("a.py", '"""Of a file."""\nx = "Of a file"\n', ["1 doc start-preposition"]),
    ("a.py", '# it is\n# told\nx = f"is no {y}, but"  # plain: ok\n', ["2 comment told"]),
    ("a.py", '# plain: ok is-no\nx = "is no file"\ny = ("a "\n  "is no file")\n', ["3 message is-no"]),
    ("a.py", "# plain: off\n# is told\n# plain: on\n\n# is told\n", ["5 comment told"]),
    ("a.py", "def f(given): pass\n", []),
    (PACKAGE + "a.py", "def f(given, told_as): pass\n", ["1 name name-told", "1 name name-word"]),
    (PACKAGE + "a.py", "given = 1\ndef text_of(array): pass\n", []),
    ("src/a.cpp", "int tellAll(const View& given) {\n  return of(told);\n}\n", ["1 name name-told", "1 name name-word"]),
    ("src/a.cpp", '// all but\n\n// one\nf("is no "\n  "file"); /* as it\n is. */\n', ["1 comment all-but", "4 message is-no", "5 comment as-it-is"]),
    ("include/robocache/a.h", "/* It tells of\n * a file, alone. */\n", ["1 header tells", "2 header alone"]),
    ("a.md", "It is told `but for` it.\n\n```\nis told\n```\n\n- all but\n  one\n", ["1 markdown told", "7 markdown all-but"]),
    ("a.md", "Is told. <!-- plain: ok -->\n", []),
    ("a.sh", 'echo "is no file" >&2\nx=1 # is told\n', ["1 message is-no", "2 comment told"]),
    ("Makefile", "all: ## Read all but one\n", ["1 message all-but"]),
]
# fmt: on


def main() -> int:
    usage = __doc__.split("\n\n")
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return 0
    parser = argparse.ArgumentParser(usage=usage[1].removeprefix("usage: "), add_help=False)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--kind", action="append", choices=LIMITS)
    parser.add_argument("--rule", action="append", choices=BY_NAME)
    parser.add_argument("--since")
    for flag in ("--summary", "--rules", "--self-test"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.rules:
        for rule in RULES:
            print(
                f"{rule.name} ({', '.join(rule.kinds)}): {rule.hint}\n    {rule.bad!r} -> {rule.good!r}"
            )
        return 0
    for path in options.paths:
        if not os.path.exists(path):
            parser.error(f"{path}: no such file or folder")
    root = git("rev-parse", "--show-toplevel").strip()
    paths = [os.path.relpath(os.path.realpath(path), root) for path in options.paths]
    os.chdir(root)
    found: list[Finding] = []
    for path in git("ls-files", "-z", "-co", "--exclude-standard", "--", *paths).split("\0"):
        if not os.path.isfile(path) or any(fnmatch.fnmatch(path, pattern) for pattern in EXCLUDED):
            continue
        try:
            with open(path, encoding="utf-8") as stream:
                found += check(path, stream.read())
        except UnicodeDecodeError:
            continue
    found = [
        f
        for f in found
        if f.kind in (options.kind or LIMITS) and f.rule.name in (options.rule or BY_NAME)
    ]
    if options.since:
        last = {f.path: max(g.line for g in found if g.path == f.path) for f in found}
        added = {path: added_lines(path, options.since, last[path]) for path in last}
        found = [f for f in found if f.line in added[f.path]]
    limits = dict.fromkeys(LIMITS, 0) if paths or options.since else LIMITS
    kinds = collections.Counter(f.kind for f in found)
    over = [kind for kind in LIMITS if kinds[kind] > limits[kind]]
    for f in sorted(found, key=lambda f: (f.path, f.line)):
        if f.kind in over and not options.summary:
            print(f"{f.path}:{f.line}: {f.rule.name}: {f.excerpt!r}: write: {f.rule.hint}")
    folders: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for f in found:
        folders[os.path.dirname(f.path) or "."][f.kind] += 1
    print("".join(f"{title:>9}" for title in LIMITS) + "  folder")
    rows = sorted(folders.items()) + [("all", kinds), ("limit", collections.Counter(limits))]
    for folder, counts in rows:
        print("".join(f"{counts[kind] or '-':>9}" for kind in LIMITS) + f"  {folder}")
    if over:
        print(
            "Over the limit: "
            + ", ".join(over)
            + ". scripts/plain_english.py --rules explains the rules."
        )
    return 1 if over else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.exit(1)
