"""Every path of the JSON on standard input with the types of its values, one a line; [] is any element of a list."""
import json
import sys

NAMES = {dict: "object", list: "array", str: "text", int: "number", float: "number", bool: "truth", type(None): "null"}
types = {}


def walk(path, value):
    types.setdefault(path, set()).add(NAMES[type(value)])
    if isinstance(value, dict):
        for key, one in value.items():
            walk(f"{path}.{key}" if path else key, one)
    elif isinstance(value, list):
        for one in value:
            walk(path + "[]", one)


walk("", json.load(sys.stdin))
for path in sorted(types):
    if path:
        print(path, " ".join(sorted(types[path])))
