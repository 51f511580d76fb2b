"""Prints the resource types of an SDK package from PyPI: token, folder of the module, and former types of each.

Usage: resource_types.py FOLDER-OF-PACKAGES PACKAGE

The package is searched, not imported: its source is generated and has only a few forms.
"""

import json
import pathlib
import re
import sys

CONSTRUCTOR = re.compile(r"super\(\w+, __self__\)\.__init__\(\s*'([^':]+:[^':]+:[^':]+)',")
FORMER_TYPE = re.compile(r'pulumi\.Alias\(type_="([^"]+)"\)')

packages, package = sys.argv[1:]
root = pathlib.Path(packages) / f"pulumi_{package}"
types = []
for path in sorted(root.rglob("*.py")):
    source = path.read_text()
    tokens = CONSTRUCTOR.findall(source)
    # A module whose name is a keyword of Python has an underscore.
    folder = "/".join(part.rstrip("_") for part in path.relative_to(root).parent.parts)
    former = FORMER_TYPE.findall(source) if len(tokens) == 1 else []
    types += [{"token": token, "folder": folder, "former": former} for token in tokens]
json.dump(types, sys.stdout)
