"""Convert the comments of the C headers to Javadoc and to XML documentation for C#.

declarations.py calls it. A declaration without a comment is an error.
"""

import re
import textwrap

_COMMENT = r"/\*((?:(?!\*/).)*)\*/"
_FUNCTION = re.compile(rf"{_COMMENT}\nRBC_API [\w ]+\*? ?(rbc\w+)\(([^)]*)\);", re.DOTALL)
_TYPE = re.compile(
    rf"{_COMMENT}\n(?:typedef struct|enum) (rbc(?!Struct\b)\w+)(?: \{{|\* \w+_t;)", re.DOTALL
)
_STRUCT = re.compile(r"^typedef struct (\w+) \{\n(.*?)\n\} \1;", re.DOTALL | re.MULTILINE)
_MEMBER = re.compile(
    rf"^  [\w ]+\*? (\w+)(?:\[\w+\])?;(?:[ \t]*{_COMMENT})?$", re.DOTALL | re.MULTILINE
)
_STATUS = re.compile(rf"^  (RBC_STATUS_\w+) = \d+,?[ \t]*{_COMMENT}$", re.MULTILINE)
_CONSTANTS = re.compile(
    rf"{_COMMENT}\n((?:#define RBC_\w+ (?:0x[0-9a-f]+|\d+)u?\b[^\n]*\n)+)", re.DOTALL
)
_CONSTANT = re.compile(rf"#define (RBC_\w+) (?:0x[0-9a-f]+|\d+)u?(?: +{_COMMENT})?\n")
_ITEM = re.compile(r"(\d+\.|[\w,-]+ ) +(\S.*)")  # "1. text" and "name  text"
# An argument of every operation; no table in the headers lists it.
_CONTEXT = "where the tensors live and the work runs"
_NUMBERS = {"int32_t": "int", "uint32_t": "uint", "int64_t": "long", "double": "double"}
_UNSEEN = re.compile(r"(struct|group|transform)_size|reserved\d?")


class Comments:
    """The comments of the headers by name, as blocks of (kind, content), and the arguments."""

    def __init__(self, text):
        self.arguments = {}
        self.functions = {}
        self.handles = {}  # the arguments of a function through which it returns a handle
        for comment, name, arguments in _FUNCTION.findall(text):
            names = re.findall(r"(\w+)(?:,|$)", arguments)
            self.functions[name], self.arguments[name] = _split(_blocks(comment), names)
            self.handles[name] = set(re.findall(r"\brbc\w+_t\* (\w+)", arguments))
        for name in self.functions:  # an operation and its ...WorkspaceSize have the same arguments
            self.arguments[name] = self.arguments[name.removesuffix("WorkspaceSize")]
        self.types = {name: _blocks(comment) for comment, name in _TYPE.findall(text)}
        self.members = {}
        for struct, body in _STRUCT.findall(text):
            if "struct_size;" in body:
                self.members[f"{struct}::{struct}"] = [("text", ["one with the defaults."])]
            for member, comment in _MEMBER.findall(body):
                if not _UNSEEN.fullmatch(member):
                    self.members[f"{struct}::{member}"] = _blocks(comment)
        self.statuses = {name: _blocks(comment) for name, comment in _STATUS.findall(text)}
        self.constants = {}
        for group, lines in _CONSTANTS.findall(text):
            for name, comment in _CONSTANT.findall(lines):
                both = [comment, group] if comment else [group]
                self.constants[name] = [block for each in both for block in _blocks(each)]
        declared = set(re.findall(r"^RBC_API .*?(rbc\w+)\(", text, re.MULTILINE))
        declared |= set(re.findall(r"^typedef struct (\w+)(?: \{|\*)", text, re.MULTILINE))
        declared |= set(re.findall(r"^  (RBC_STATUS_\w+) =", text, re.MULTILINE))
        told = {**self.functions, **self.types, **self.statuses, **self.members}
        silent = [name for name in told if not told[name]] + sorted(declared - set(told))
        if silent:
            raise SystemExit(f"no comment in the headers: {', '.join(silent)}")


def _blocks(comment):
    """Return the paragraphs, lists and formulas of a comment, in their order."""
    starred = comment.startswith("\n *")
    lines = [line[3:] for line in comment.splitlines()] if starred else [" ".join(comment.split())]
    blocks = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        item = _ITEM.fullmatch(line.strip()) if 0 < indent <= 3 else None
        kind = blocks[-1][0] if blocks else None
        if not line.strip():
            blocks.append(("end", []))
        elif item:
            if kind != "list":
                blocks.append(("list", []))
            blocks[-1][1].append([item[1].strip(), item[2]])
        elif indent > 0 and kind == "list":
            blocks[-1][1][-1][1] += " " + line.strip()
        elif indent > 0:
            if kind != "formula":
                blocks.append(("formula", []))
            blocks[-1][1].append(line.strip())
        else:
            if kind != "text":
                blocks.append(("text", []))
            blocks[-1][1].append(line.strip())
    return [block for block in blocks if block[0] != "end"]


def _split(blocks, arguments):
    """Separate the table of arguments from the other blocks."""
    for at, (kind, items) in enumerate(blocks):
        if kind == "list" and items[0][0] in arguments:
            own = {"context": _CONTEXT} if "context" in arguments else {}
            return blocks[:at] + blocks[at + 1 :], {**own, **dict(items)}
    return blocks, {}


class _Javadoc:
    LIST, ITEM = ("<ul>", "</ul>"), "  <li>{term}: {text}"
    FORMULA = ("<pre>{@code", "}</pre>")
    PARAGRAPH = ("<p>", "")

    def escaped(text):
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def text(text):
        plain, *rest = text.split("`")  # then code and plain text in turn
        rest = (
            f"{{@code {code}}}{_Javadoc.escaped(text)}" for code, text in zip(rest[::2], rest[1::2])
        )
        return _Javadoc.escaped(plain) + "".join(rest)

    def formula(text):
        return text

    def comment(first, rest, arguments):
        if len(first) == 1 and not rest and not arguments:
            return f"/** {first[0]} */"
        lines = first + rest + [""] * bool(arguments)
        for name, text in arguments.items():
            lines += _wrapped(f"@param {name} {text}", "    ")
        return "/**\n" + "".join(f"   * {line}".rstrip() + "\n" for line in lines) + "   */"


class _Xml:
    LIST = ('<list type="bullet">', "</list>")
    ITEM = "  <item><term>{term}</term><description>{text}</description></item>"
    FORMULA = ("<code>", "</code>")
    PARAGRAPH = ("<para>", "</para>")

    def text(text):
        return re.sub(r"`([^`]*)`", r"<c>\1</c>", _Javadoc.escaped(text))

    formula = _Javadoc.escaped

    def comment(first, rest, arguments):
        lines = _wrapped(f"<summary>{' '.join(first)}</summary>")
        if rest:
            lines += ["<remarks>", *rest, "</remarks>"]
        for name, text in arguments.items():
            lines += _wrapped(f'<param name="{name}">{text}</param>')
        return "\n  ".join(f"/// {line}" for line in lines)


def _wrapped(text, indent=""):
    return textwrap.wrap(text, 92, subsequent_indent=indent, break_on_hyphens=False)


def _sentence(text):
    text = re.sub(r"^[a-z]+(?![\w.])", lambda word: word[0].capitalize(), text)
    return text if re.search(r"[.:,;]$", text) else text + "."


def comment(style, blocks, arguments=None):
    """Return a comment in a style, without the indentation of its first line."""
    first, *others = blocks
    rest = []
    for kind, content in others:
        if kind == "list":
            rest.append(style.LIST[0])
            for term, text in content:
                item = style.ITEM.format(term=term.rstrip("."), text=style.text(text))
                rest += _wrapped(item, "      ")
            rest.append(style.LIST[1])
        elif kind == "formula":
            rest += [style.FORMULA[0], *(style.formula(line) for line in content), style.FORMULA[1]]
        else:
            start, end = style.PARAGRAPH
            rest += _wrapped(start + style.text(_sentence(" ".join(content))) + end)
    arguments = {name: style.text(text) for name, text in (arguments or {}).items()}
    return style.comment(_wrapped(style.text(_sentence(" ".join(first[1])))), rest, arguments)


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _entries(style, comments, rename, returns_handles=False):
    """Yield (kind, C name, comment) of every declaration."""
    for name, blocks in comments.types.items():
        yield "type", name, comment(style, blocks)
    for name, blocks in {**comments.members, **comments.constants, **comments.statuses}.items():
        kind = "member" if "::" in name else "status" if name in comments.statuses else "constant"
        yield kind, name, comment(style, blocks)
    for name, blocks in comments.functions.items():
        absent = comments.handles[name] if returns_handles else ()
        arguments = {
            rename.get(key, key): text
            for key, text in comments.arguments[name].items()
            if key not in absent
        }
        if rename and arguments and name.endswith("WorkspaceSize"):
            arguments["bytes"] = "what the call needs"
        yield "function", name, comment(style, blocks, arguments)


def java(comments):
    lines = ["/* Written by documentation.py. */"]
    for kind, name, text in _entries(_Javadoc, comments, {}, returns_handles=True):
        if kind == "type":
            text = text.replace("\n  ", "\n")
            lines.append(f"%typemap(javaimports) {_tag(name)} {name} {_quoted(text)}")
        elif kind != "status":
            lines.append(f"%javamethodmodifiers {name} {_quoted(text + chr(10) + '  public')};")
    return "\n".join(lines) + "\n"


def csharp(comments):
    lines = ["/* Written by documentation.py. */"]
    keywords = {"params": "params_", "out": "out_"}
    for kind, name, text in _entries(_Xml, comments, keywords):
        if kind == "type":
            text = text.replace("\n  ", "\n")
            lines.append(f"%typemap(csattributes) {_tag(name)} {name} {_quoted(text)}")
        elif kind == "constant":
            lines.append(f"%csmethodmodifiers {name} {_quoted(text + chr(10) + '  public')};")
        else:
            lines.append(f"%csattributes {name} {_quoted(text)};")
    return "\n".join(lines) + "\n"


def _tag(name):
    return "enum" if name == "rbcStatus" else "struct"


def operations(comments, headers):
    """Return the operations as methods of the C# class Context; nullable arguments are optional."""
    methods = [
        _method(comments, name, headers.functions[name])
        for name in headers.operations()
        if headers.functions[name].startswith("rbcContext_t ")
    ]
    body = "\n".join(methods)
    return f"namespace RoboCache {{\n\npublic partial class Context {{\n{body}}}\n\n}}\n"


def _method(comments, name, declared):
    table = {key: text for key, text in comments.arguments[name].items() if key != "context"}
    ordered = sorted(table, key=lambda key: _may_be_null(table[key]))
    parameters = ", ".join(
        f"{_class(key, declared)} {_camel(key)}" + " = null" * _may_be_null(table[key])
        for key in ordered
    )
    text = comment(_Xml, comments.functions[name], {_camel(key): table[key] for key in ordered})
    method = name.removeprefix("rbc")
    passed = ", ".join(map(_camel, table))
    return (
        f"  {text}\n  public void {method}({parameters}) {{\n"
        f"    Rbc.{method}(this, {passed});\n  }}\n"
    )


def _class(argument, declared):
    """Return the type of an argument in C#: an array if a count follows."""
    number, struct = re.search(rf"(?:(\w+)|const rbc(\w+)\*) {argument}\b", declared).groups()
    if number is not None:
        handle = number.removeprefix("rbc").removesuffix("_t")
        return _NUMBERS[number] if number in _NUMBERS else handle
    is_array = re.search(rf"\bnum_(?:{argument}|\w+\b.*Outputs\* {argument})\b", declared)
    return {"Output": "Tensor"}.get(struct, struct) + "[]" * bool(is_array)


def _may_be_null(text):
    return re.search(r"(?<!not )\bnull\b", text) is not None


def _camel(name):
    name = {"out": "output", "params": "parameters"}.get(name, name)
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def enumerations(header):
    """Return a header whose enum comments are in the form that SWIG copies to Java."""
    return _STATUS.sub(lambda each: each[0].replace("/*", "/**<"), header)
