"""Zip a folder that has a NuGet package's layout: make_nupkg.py FOLDER OUTPUT_FOLDER.

Adds the two files that the Open Packaging Conventions require. Equal content gives equal bytes:
SOURCE_DATE_EPOCH gives the time of the entries.
"""

import os
import pathlib
import sys
import time
import xml.etree.ElementTree as ElementTree
import zipfile
from xml.sax.saxutils import quoteattr

CONTENT_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
RELATIONSHIPS_TYPE = "application/vnd.openxmlformats-package.relationships+xml"
MANIFEST = "http://schemas.microsoft.com/packaging/2010/07/manifest"
XML = '<?xml version="1.0" encoding="utf-8"?>\n'


def content_types(names):
    extensions = {os.path.splitext(name)[1][1:] for name in names}
    lines = [
        f'  <Default Extension={quoteattr(extension)} ContentType="application/octet" />'
        for extension in sorted(extensions - {""})
    ]
    lines += [
        f'  <Override PartName={quoteattr("/" + name)} ContentType="application/octet" />'
        for name in names
        if not os.path.splitext(name)[1]
    ]
    lines.append(f'  <Default Extension="rels" ContentType="{RELATIONSHIPS_TYPE}" />')
    return f'{XML}<Types xmlns="{CONTENT_TYPES}">\n' + "\n".join(lines) + "\n</Types>\n"


def relationships(nuspec):
    return (
        f'{XML}<Relationships xmlns="{RELATIONSHIPS}">\n'
        f'  <Relationship Type="{MANIFEST}" Target="/{nuspec}" Id="R1" />\n'
        "</Relationships>\n"
    )


def identity(nuspec):
    values = {
        element.tag.rpartition("}")[2]: element.text
        for element in ElementTree.parse(nuspec).getroot().iter()
    }
    return values["id"], values["version"]


def main(folder, output):
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    (nuspec,) = (name for name in names if name.endswith(".nuspec") and "/" not in name)
    parts = {
        "[Content_Types].xml": content_types(names).encode(),
        "_rels/.rels": relationships(nuspec).encode(),
        **{name: (folder / name).read_bytes() for name in names},
    }
    # The earliest time in a zip file is 1980.
    made = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    with zipfile.ZipFile(output / "{}.{}.nupkg".format(*identity(folder / nuspec)), "w") as package:
        for name, data in parts.items():
            entry = zipfile.ZipInfo(name, made)
            entry.external_attr = 0o644 << 16
            package.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
