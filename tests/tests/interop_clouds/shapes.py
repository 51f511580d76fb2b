"""Prints the inputs, outputs, secrets and aliases of the provider and of some resources in an SDK package from PyPI.

Usage: shapes.py FOLDER-OF-PACKAGES PACKAGE TOKEN...

The package is parsed, not imported: its source is generated and has only a few forms.
"""

import ast
import json
import pathlib
import sys

SCALARS = {"str": "string", "bool": "boolean", "int": "integer", "float": "number", "Any": "any"}


def attribute(node):
    """Returns the last segment of a name such as `builtins.str`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


def classes(path):
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}


def type_of(node, nested):
    """Returns the type of an annotation, and whether the property is required."""
    if isinstance(node, ast.Constant):
        if node.value in nested:
            return {"object": fields(nested[node.value], nested)}, True
        return type_of(ast.parse(node.value, mode="eval").body, nested)
    if not isinstance(node, ast.Subscript):
        return SCALARS[attribute(node)], True
    name, inner = attribute(node.value), node.slice
    if name == "Optional":
        return type_of(inner, nested)[0], False
    if name in ("Input", "Output"):
        return type_of(inner, nested)
    if name == "Sequence":
        return {"list": type_of(inner, nested)[0]}, True
    if name == "Mapping":
        return {"map": type_of(inner.elts[1], nested)[0]}, True
    if name == "Union":
        # Either a class or its dictionary, or a string or an enum of strings.
        return type_of(inner.elts[0], nested)
    raise ValueError(ast.dump(node))


def getters(node):
    """Yields the properties of a class by their wire names, with their annotations."""
    for member in node.body:
        for decorator in getattr(member, "decorator_list", []):
            call = decorator if isinstance(decorator, ast.Call) else None
            if attribute(call.func if call else decorator) == "getter":
                names = [k.value.value for k in call.keywords if k.arg == "name"] if call else []
                yield (names or [member.name])[0], member.returns


def fields(node, nested):
    found = {}
    for name, annotation in getters(node):
        kind, required = type_of(annotation, nested)
        found[name] = {"type": kind, "required": required}
    return found


def options(node):
    """Returns the secret outputs and the former types that a class adds to the options of its resources."""
    secrets, aliases = [], []
    for call in ast.walk(node):
        if not isinstance(call, ast.Call) or attribute(call.func) != "ResourceOptions":
            continue
        for keyword in call.keywords:
            if keyword.arg == "additional_secret_outputs":
                secrets += ast.literal_eval(keyword.value)
            if keyword.arg == "aliases":
                aliases += [alias.keywords[0].value.value for alias in keyword.value.elts]
    return {"secretOutputs": secrets, "aliases": aliases}


def uses(node, name):
    return any(isinstance(part, ast.Attribute) and part.attr == name for part in ast.walk(node))


def outputs(node):
    """Returns the outputs of a class: `string` for strings, `any` for all others."""
    found = {}
    for name, annotation in getters(node):
        while isinstance(annotation, ast.Subscript) and attribute(annotation.value) in ("Output", "Optional"):
            annotation = annotation.slice
        found[name] = "string" if attribute(annotation) == "str" else "any"
    return found


def provider(root):
    known = classes(root / "provider.py")
    nested = classes(root / "_inputs.py")
    inputs = fields(known["ProviderArgs"], nested)
    for field in inputs.values():
        # Types of lists and objects are long and not needed.
        if not isinstance(field["type"], str):
            field["type"] = "any"
    for statement in ast.walk(known["Provider"]):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            words = target.slice.value.split("_")
            field = inputs.get(words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:]))
            if field is not None:
                field["json"] = field.get("json", False) or uses(statement.value, "to_json")
                field["secret"] = field.get("secret", False) or uses(statement.value, "secret")
    return {"inputs": inputs, **options(known["Provider"])}


def resource(root, token):
    _, module, name = token.split(":")
    folder = root / module.split("/")[0]
    for path in sorted(folder.glob("*.py")):
        if f"'{token}'" in path.read_text():
            known = classes(path)
            nested = classes(folder / "_inputs.py") if (folder / "_inputs.py").exists() else {}
            return {
                "inputs": fields(known[name + "Args"], nested),
                "outputs": outputs(known[name]),
                **options(known[name]),
            }
    raise SystemExit(f"{token} is not in {folder}")


def main():
    folder, package, *tokens = sys.argv[1:]
    root = pathlib.Path(folder) / f"pulumi_{package}"
    version = json.loads((root / "pulumi-plugin.json").read_text())["version"]
    shapes = {
        "package": package,
        "version": version,
        "provider": provider(root),
        "resources": {token: resource(root, token) for token in tokens},
    }
    print(json.dumps(shapes, indent=1, sort_keys=True))


main()
