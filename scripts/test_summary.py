"""Print 'N passed, N failed, N skipped' over ctest JUnit files.

If a test wrote its own JUnit file as junit/<test name>.xml next to the ctest file, as pytest does,
its cases are counted one by one. Usage: test_summary.py ctest.xml...
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def cases(path):
    return list(ElementTree.parse(path).getroot().iter("testcase"))


def main(paths):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for path in map(pathlib.Path, paths):
        for case in cases(path):
            results = [outcome(case)]
            detail = path.parent / "junit" / f"{case.get('name')}.xml"
            if detail.exists():
                inner = [outcome(inner_case) for inner_case in cases(detail)]
                # A runner that failed without a failed case (for example, a crash) counts as a
                # failure.
                if results == ["failed"] and "failed" not in inner:
                    inner.append("failed")
                results = inner
            for result in results:
                counts[result] += 1
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


main(sys.argv[1:])
