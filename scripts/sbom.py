"""Print the bill of materials of a build of librobocache.so, in JSON: CycloneDX 1.5 or SPDX 2.3.

It lists third-party code in the library: linked statically, or compiled in from headers. The
components, their versions and their licences are read from the build.
Usage: sbom.py BUILD_DIR cyclonedx|spdx (a build of Ninja's; SOURCE_DATE_EPOCH may give the time)
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

LICENSE_TEXTS = {  # in headers without an SPDX line
    "BSD-2-Clause": "BSD 2-Clause License",
    "BSD-3-Clause": "Neither the name of",
    "Apache-2.0": "Licensed under the Apache License, Version 2.0",
}


class Build:
    """Facts about how the library was made, from its build folder."""

    def __init__(self, folder):
        self.folder = folder
        self.commands = self._ninja("commands", "librobocache.so")
        lines = self._ninja("deps").splitlines()
        self._headers = sorted({line.strip() for line in lines if line.startswith("    ")})

    def _ninja(self, *arguments):
        command = ["ninja", "-C", self.folder, "-t", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def _read(self, header):
        return (self.folder / header).read_text(errors="replace")

    def macros(self, header):
        """Return the integer macros of a header; None if nothing was compiled with it."""
        for path in self._headers:
            if path.endswith("/" + header):
                found = re.findall(r"^#\s*define\s+(\w+)\s+(\d+)\b", self._read(path), re.MULTILINE)
                return {name: int(value) for name, value in found}
        return None

    def licenses(self, pattern):
        """Return an SPDX expression of the licences of the headers whose path has the pattern."""
        found = set()
        for text in (self._read(path) for path in self._headers if re.search(pattern, path)):
            # REUSE-IgnoreStart
            identifiers = re.findall(r"SPDX-License-Identifier: (.*\w)", text)
            # REUSE-IgnoreEnd
            found.update(identifiers or (id for id, part in LICENSE_TEXTS.items() if part in text))
        return {"expression": " AND ".join(sorted(found))}

    def compiler_version(self):
        (file,) = self.folder.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")
        return re.search(r'CMAKE_CXX_COMPILER_VERSION "([^"]+)"', file.read_text())[1]


def component(name, version, license, description, **more):
    return {
        "type": "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "description": description,
        "licenses": [license],
        **more,
    }


def robocache(build):
    macros = build.macros("robocache/base.h")
    library = (build.folder / "librobocache.so").read_bytes()
    return component(
        "robocache",
        "{RBC_VERSION_MAJOR}.{RBC_VERSION_MINOR}.{RBC_VERSION_PATCH}".format(**macros),
        {"expression": "Apache-2.0"},
        "librobocache.so, which every package carries",
        hashes=[{"alg": "SHA-256", "content": hashlib.sha256(library).hexdigest()}],
    )


def highway(build):
    macros = build.macros("hwy/highway.h")
    version = "{HWY_MAJOR}.{HWY_MINOR}.{HWY_PATCH}".format(**macros)
    return component(
        "highway",
        version,
        build.licenses("/hwy/"),
        "Highway: headers, compiled in",
        purl=f"pkg:github/google/highway@{version}",
    )


def xxhash(build):
    macros = build.macros("xxhash.h")
    version = "{XXH_VERSION_MAJOR}.{XXH_VERSION_MINOR}.{XXH_VERSION_RELEASE}".format(**macros)
    return component(
        "xxhash",
        version,
        build.licenses(r"/xxh\w+\.h$"),
        "xxHash: header, compiled in",
        purl=f"pkg:github/cyan4973/xxhash@v{version}",
    )


def libstdcxx(build):
    return component(
        "libstdc++",
        build.compiler_version(),
        {"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"},
        "GCC's C++ runtime library, linked statically",
    )


def cccl(build):
    number = build.macros("cuda/std/__cccl/version.h")["CCCL_VERSION"]
    version = f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}"
    return component(
        "cccl",
        version,
        build.licenses("/cccl/"),
        "CUB, Thrust and libcu++: headers, compiled in",
        purl=f"pkg:github/nvidia/cccl@v{version}",
    )


def cudart(build):
    number = build.macros("cuda_runtime_api.h")["CUDART_VERSION"]
    license = {
        "name": "NVIDIA CUDA Toolkit End User License Agreement",
        "url": "https://docs.nvidia.com/cuda/eula/index.html",
    }
    return component(
        "cudart",
        f"{number // 1000}.{number % 1000 // 10}",
        {"license": license},
        "CUDA Runtime, linked statically",
    )


def contents(build):
    yield highway(build)
    yield xxhash(build)
    if "-static-libstdc++" in build.commands:
        yield libstdcxx(build)
    if "libcudart_static" in build.commands:
        yield cccl(build)
        yield cudart(build)


def made_at():
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    made = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return made.strftime("%Y-%m-%dT%H:%M:%SZ")


def cyclonedx(root, parts):
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": made_at(), "component": root},
        "components": parts,
        "dependencies": [
            {"ref": root["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"], "dependsOn": []} for part in parts),
        ],
    }


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def spdx_license(license):
    """Return an SPDX expression; a licence without one gets a reference of this document."""
    if "expression" in license:
        return license["expression"]
    return "LicenseRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", license["license"]["name"])


def spdx_package(component):
    (license,) = component["licenses"]
    package = {
        "SPDXID": spdx_id(component["name"]),
        "name": component["name"],
        "versionInfo": component["version"],
        "description": component["description"],
        "primaryPackagePurpose": "LIBRARY",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": spdx_license(license),
        "licenseDeclared": spdx_license(license),
        "copyrightText": "NOASSERTION",
    }
    if "hashes" in component:
        package["checksums"] = [
            {"algorithm": digest["alg"].replace("-", ""), "checksumValue": digest["content"]}
            for digest in component["hashes"]
        ]
    if "purl" in component:
        package["externalRefs"] = [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": component["purl"],
            }
        ]
    return package


def spdx(root, parts):
    own = {
        spdx_license(license): license["license"]
        for part in parts
        for license in part["licenses"]
        if "expression" not in license
    }
    name = f"{root['name']}-{root['version']}"
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        # The library's hash makes the namespace unique to this bill.
        "documentNamespace": (
            f"https://spdx.org/spdxdocs/{name}-{root['hashes'][0]['content'][:32]}"
        ),
        "creationInfo": {"created": made_at(), "creators": ["Tool: robocache-sbom.py"]},
        "packages": [spdx_package(component) for component in (root, *parts)],
        "hasExtractedLicensingInfos": [
            {
                "licenseId": identifier,
                "name": license["name"],
                "extractedText": f"See {license['url']}",
                "seeAlsos": [license["url"]],
            }
            for identifier, license in own.items()
        ],
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": spdx_id(root["name"]),
            },
            *(
                {
                    "spdxElementId": spdx_id(root["name"]),
                    "relationshipType": "CONTAINS",
                    "relatedSpdxElement": spdx_id(part["name"]),
                }
                for part in parts
            ),
        ],
    }


def main():
    folder, form = sys.argv[1:]
    build = Build(pathlib.Path(folder))
    print(json.dumps(FORMS[form](robocache(build), list(contents(build))), indent=2))


FORMS = {"cyclonedx": cyclonedx, "spdx": spdx}

if __name__ == "__main__":
    main()
