"""One line a test of a JUnit file as CPython's regrtest writes it: its name, and what came of it."""
import sys
import xml.etree.ElementTree

for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
    result = case.get("result", "")
    kinds = [child.tag for child in case if child.tag in ("error", "failure", "skipped")]
    print(f"{case.get('name')}: {' '.join([result, *kinds])}")
