"""recorded.py of tests/abi/recorded tells what breaks a compiled program, not what adds to it."""

from __future__ import annotations

import copy
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "abi" / "recorded"))
import recorded  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("abidiff"), reason="No abidiff (abigail-tools)")
RECORDS = sorted(recorded.RECORDS.glob("*.abixml"))


def named(abi, tag, name):
    (found,) = (each for each in abi.iter(tag) if each.get("name") == name)
    return found


def field(abi, struct, name):
    members = named(abi, "class-decl", struct).iter("var-decl")
    (found,) = (each for each in members if each.get("name") == name)
    return found


def int64(abi):
    return field(abi, "rbcTensor", "byte_offset").get("type-id")


def grow(abi, struct="rbcResampleParams"):
    """By a field at its end."""
    made = named(abi, "class-decl", struct)
    size = made.get("size-in-bits")
    made.set("size-in-bits", str(int(size) + 64))
    member = ElementTree.SubElement(made, "data-member", {"access": "public"})
    member.set("layout-offset-in-bits", size)
    ElementTree.SubElement(member, "var-decl", {"name": "later", "type-id": int64(abi)})


def add_constant(abi):
    status = named(abi, "enum-decl", "rbcStatus_t")
    ElementTree.SubElement(status, "enumerator", {"name": "RBC_STATUS_NEW", "value": "99"})


def add_function(abi):
    symbols = abi.find("elf-function-symbols")
    symbol = copy.deepcopy(named(symbols, "elf-symbol", "rbcFuse"))
    symbol.set("name", "rbcNew")
    symbols.append(symbol)
    function = copy.deepcopy(named(abi, "function-decl", "rbcFuse"))
    function.attrib.update({"name": "rbcNew", "mangled-name": "rbcNew"})
    function.set("elf-symbol-id", "rbcNew@@ROBOCACHE_1")
    abi.find("abi-instr").append(function)


def swap_fields(abi):
    one, other = (field(abi, "rbcResampleParams", name) for name in ("max_gap", "tolerance"))
    one.attrib["name"], other.attrib["name"] = other.get("name"), one.get("name")


def insert_field(abi):
    struct = named(abi, "class-decl", "rbcFuseStream")
    for member in struct.findall("data-member")[3:]:
        member.set("layout-offset-in-bits", str(int(member.get("layout-offset-in-bits")) + 64))
    struct.set("size-in-bits", str(int(struct.get("size-in-bits")) + 64))


def drop_field(abi):
    struct = named(abi, "class-decl", "rbcTsdfParams")
    struct.remove(struct.findall("data-member")[-1])


def change_type(abi):
    """To one of the same size."""
    field(abi, "rbcResampleParams", "tolerance").set("type-id", int64(abi))


def change_parameter(abi):
    named(abi, "function-decl", "rbcFuse").findall("parameter")[2].set("type-id", int64(abi))


def change_return(abi):
    function = named(abi, "function-decl", "rbcFuse")
    function.find("return").set("type-id", function.findall("parameter")[2].get("type-id"))


def change_constant(abi):
    named(abi, "enumerator", "RBC_STATUS_INTERNAL").set("value", "77")


def remove_function(abi):
    for parent in (abi.find("elf-function-symbols"), abi.find("abi-instr")):
        for each in parent.findall("*[@name='rbcFuse']"):
            parent.remove(each)


def move_symbol(abi):
    """To the version of a later release."""
    named(abi, "elf-symbol", "rbcFuse").set("version", "ROBOCACHE_1_0.2")
    named(abi, "function-decl", "rbcFuse").set("elf-symbol-id", "rbcFuse@@ROBOCACHE_1_0.2")


def both(change):
    def changed(abi):
        change(abi)
        grow(abi)
        grow(abi, "rbcFuseStream")

    return changed


def name_reserved(abi, kind=None):
    """With another type, if any: a program wrote 0 of its own there."""
    found = field(abi, "rbcResampleParams", "reserved0")
    found.set("name", "limit")
    if kind is not None:
        found.set("type-id", kind(abi).get("type-id"))


GROWN = {
    "nothing": lambda _: None,
    "a name for a reserved field": name_reserved,
    "a field at the end": grow,
    "a constant": add_constant,
    "a function": add_function,
}
BROKEN = {
    "fields swapped": swap_fields,
    "fields swapped of a struct that grew": both(swap_fields),
    "a field before others": insert_field,
    "a field before others of a struct that grew": both(insert_field),
    "a field dropped": drop_field,
    "another type of a reserved field that got a name": lambda abi: name_reserved(
        abi, lambda abi: field(abi, "rbcTensor", "byte_offset")
    ),
    "another type of a field": change_type,
    "another type of a field of a struct that grew": both(change_type),
    "a struct that must not grow": lambda abi: grow(abi, "rbcVoxelGrid"),
    "another struct that must not grow": lambda abi: grow(abi, "rbcChannelGroup"),
    "another type of a parameter": change_parameter,
    "another type of a result": change_return,
    "another value of a constant": change_constant,
    "a function removed": remove_function,
    "a symbol of another version": move_symbol,
}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
@pytest.mark.parametrize("change", [*GROWN, *BROKEN])
def test_changes(record, change):
    abi = ElementTree.parse(recorded.LATEST).getroot()
    {**GROWN, **BROKEN}[change](abi)
    told = recorded.incompatible(record, abi)
    assert bool(told) == (change in BROKEN), told


def test_records_know_the_public_types_alone():
    for record in RECORDS:
        for struct in ElementTree.parse(record).getroot().iter("class-decl"):
            name, opaque = struct.get("name"), struct.get("is-declaration-only") == "yes"
            assert name.startswith(("rbc", "DLManagedTensor")), name
            assert opaque == (len(struct) == 0), name
