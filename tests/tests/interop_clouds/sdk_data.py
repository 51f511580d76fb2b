"""Writes what the SDK packages of Pulumi on PyPI know of the resources and functions of core types: one JSON file per
package of a list.

Usage: sdk_data.py FOLDER-OF-PACKAGES LIST FOLDER-OF-RESULTS

The packages are parsed, not imported: their source is generated and has only a few forms. A form that is not known ends
the script. core_types.json, beside this script, is the list for the files in provisioner/src/registry/sdk; the suite
prints the command that updates them.
"""

import ast
import functools
import json
import pathlib
import re
import sys

CLASS = re.compile(r"^class (\w+).*?(?=^(?:class|def|if|elif) |^@pulumi|\Z)", re.MULTILINE | re.DOTALL)
SCALARS = {"str": "string", "bool": "boolean", "int": "integer", "float": "number", "Any": "any", "Asset": "asset"}


def last_segment(node):
    """Returns the last segment of a name such as `builtins.str`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


@functools.cache
def sources(path):
    """Returns the source of each class of a file by name; none if there is no such file."""
    return {found[1]: found[0] for found in CLASS.finditer(path.read_text())} if path.exists() else {}


@functools.cache
def class_of(path, name):
    """Returns a class of a file, or none. Only this class is parsed: some files are large."""
    source = sources(path).get(name)
    return ast.parse(source).body[0] if source else None


def calls(node, name):
    """Yields the calls of a function, by the last segment of its name."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and last_segment(call.func) == name:
            yield call


def keyword(call, name):
    """Returns the constant that a call has for a parameter, or none."""
    return next((ast.literal_eval(given.value) for given in call.keywords if given.arg == name), None)


def getters(node):
    """Yields the properties of a class: name in Python, name on the wire, annotation."""
    for member in node.body:
        for decorator in getattr(member, "decorator_list", []):
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if last_segment(function) == "getter":
                renamed = keyword(decorator, "name") if isinstance(decorator, ast.Call) else None
                yield member.name, renamed or member.name, member.returns


def is_required(annotation):
    """Returns whether an annotation of an input excludes its absence."""
    if not isinstance(annotation, ast.Subscript):
        return True
    name = last_segment(annotation.value)
    return name != "Optional" and (name != "Input" or is_required(annotation.slice))


def additions(constructor, wire_names):
    """Returns the inputs that a constructor marks as secret, and the constants that it sets."""
    secrets, defaults = [], {}
    for statement in ast.walk(constructor):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        # `if kind is None: kind = "Secret"`, or `__props__.__dict__["kind"] = "Secret"`
        subscript = target.slice.value if isinstance(target, ast.Subscript) else None
        name = wire_names.get(target.id if isinstance(target, ast.Name) else subscript)
        if name and isinstance(statement.value, ast.Constant) and statement.value.value is not None:
            defaults[name] = statement.value.value
        if name and next(calls(statement.value, "secret"), None):
            secrets.append(name)
    return sorted(secrets), defaults


def containing(folder, text):
    """Returns the first file of a module that contains a text."""
    return next(path for path in sorted(folder.glob("*.py")) if text in path.read_text())


class Package:
    """SDK package that is read, with the object types that were met."""

    def __init__(self, packages, name):
        self.name = name
        self.root = packages / f"pulumi_{name}"
        self.types = {}
        self.modules = {}
        register = next(calls(ast.parse((self.root / "__init__.py").read_text()), "register"))
        for module in json.loads(keyword(register, "resource_modules")):
            folder = self.root.joinpath(*module["fqn"].split(".")[1:])
            self.modules.update({token: (folder, name) for token, name in module["classes"].items()})

    def kind(self, node, folder):
        """Returns the kind of a value with the annotation, in the module of the folder."""
        if isinstance(node, ast.Constant):
            return self.named(node.value, folder)
        if not isinstance(node, ast.Subscript):
            return SCALARS[last_segment(node)]
        name, inner = last_segment(node.value), node.slice
        if name in ("Optional", "Input", "Output"):
            return self.kind(inner, folder)
        if name == "Sequence":
            return {"array": self.kind(inner, folder)}
        if name == "Mapping":
            return {"map": self.kind(inner.elts[1], folder)}
        if name == "Union":
            first, second = inner.elts
            # A class and its dictionary, an enum and its values, an asset and an archive are each one kind.
            if isinstance(second, ast.Constant) or last_segment(second) == "Archive":
                return self.kind(first, folder)
            return {"oneOf": [self.kind(first, folder), self.kind(second, folder)]}
        raise ValueError(ast.dump(node))

    def named(self, reference, folder):
        """Returns the kind of a quoted annotation: a class of this or another module, or an annotation."""
        if "[" in reference or reference in SCALARS:
            return self.kind(ast.parse(reference, mode="eval").body, folder)
        *module, name = reference.split(".")
        module = [part.removeprefix("_") for part in module if part != "outputs"]
        folder = self.root.joinpath(*module) if module else folder
        if enum := class_of(folder / "_enums.py", name):
            return SCALARS[last_segment(enum.bases[0])]
        name = name.removesuffix("Args")
        path = "/".join([*folder.relative_to(self.root).parts, name])
        if path not in self.types:
            # Types may contain themselves.
            self.types[path] = {}
            self.types[path] = self.object_type(folder, name)
        return {"object": path}

    def object_type(self, folder, name):
        """Returns the fields of a class of inputs, and of the class of outputs that belongs to it."""
        given, returned = class_of(folder / "_inputs.py", f"{name}Args"), class_of(folder / "outputs.py", name)
        if given is None:
            return {"fields": self.properties(returned, folder), "required": []}
        for call in calls(given, "set"):
            # Constants in nested objects would need a place in the files.
            if isinstance(call.args[2], ast.Constant):
                raise ValueError(f"{name} has a default for {call.args[1].value}")
        # What an input may be is more precise than what an output is; fields of outputs alone exist too.
        fields = {**self.properties(returned, folder), **self.properties(given, folder)}
        return {"fields": fields, "required": required(given)}

    def properties(self, node, folder):
        """Returns the kinds of the properties of a class; none without a class."""
        return {wire: self.kind(annotation, folder) for _, wire, annotation in (getters(node) if node else [])}

    def resource(self, token):
        """Returns what the class of a resource says, and what its constructor adds."""
        if token == f"pulumi:providers:{self.name}":
            folder, name = self.root, "Provider"
        else:
            folder, name = self.modules[token]
        path = containing(folder, f"class {name}(pulumi.")
        node, arguments = class_of(path, name), class_of(path, f"{name}InitArgs") or class_of(path, f"{name}Args")
        constructor = next(member for member in node.body if getattr(member, "name", None) == "_internal_init")
        secrets, defaults = additions(constructor, {python: wire for python, wire, _ in getters(arguments)})
        options = list(calls(constructor, "ResourceOptions"))
        return {
            "remote": any(keyword(call, "remote") for call in calls(constructor, "__init__")),
            "inputs": self.properties(arguments, folder),
            "required": required(arguments),
            "outputs": self.properties(node, folder),
            "secretInputs": secrets,
            "secretOutputs": sorted(sum((keyword(call, "additional_secret_outputs") or [] for call in options), [])),
            "aliases": [keyword(call, "type_") for call in calls(constructor, "Alias")],
            "defaults": defaults,
        }

    def function(self, token):
        """Returns the arguments and results of a function."""
        _, module, name = token.split(":")
        folder = self.root.joinpath(*[part for part in module.split("/")[:-1] if part != "index"])
        path = containing(folder, f"'{token}'")
        body = ast.parse(path.read_text()).body
        call = next(node for node in body if isinstance(node, ast.FunctionDef) and node.name.endswith("_output"))
        sent = {}
        for statement in ast.walk(call):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Subscript) and last_segment(target.value) == "__args__":
                sent[statement.value.id] = target.slice.value
        parameters = [parameter for parameter in call.args.args if parameter.arg in sent]
        result = class_of(path, name[0].upper() + name[1:] + "Result")
        return {
            "args": {sent[parameter.arg]: self.kind(parameter.annotation, folder) for parameter in parameters},
            # The outer `Optional` stands at each parameter, the inner one at those that may be left out.
            "required": sorted(sent[p.arg] for p in parameters if is_required(p.annotation.slice)),
            "results": self.properties(result, folder),
        }


def required(node):
    """Returns the names of the properties of a class that must be set."""
    return sorted(wire for _, wire, annotation in getters(node) if is_required(annotation))


def described(packages, name, listed):
    """Returns the content of the file of a package."""
    package = Package(packages, name)
    version = json.loads((package.root / "pulumi-plugin.json").read_text())["version"]
    if version != listed.get("version", version):
        raise SystemExit(f"pulumi-{name} has version {version}, the list says {listed['version']}")
    for token in listed.get("withoutClass", []):
        if token in package.modules:
            raise SystemExit(f"pulumi-{name} has a class for {token}: list it under resources")
    resources = {token: package.resource(token) for token in [f"pulumi:providers:{name}", *listed["resources"]]}
    functions = {token: package.function(token) for token in listed.get("functions", [])}
    return {"name": name, "version": version, "resources": resources, "functions": functions, "types": package.types}


def text(value, depth=0):
    """Returns JSON with one line per property; what is deeper, and what is no object, is on the line of its property."""
    if depth > 3 or not isinstance(value, dict):
        return json.dumps(value)
    # Members that say nothing are left out, except constants.
    members = [(name, member) for name, member in sorted(value.items()) if depth == 3 or member not in ({}, [], False)]
    lines = [f"{' ' * depth} {json.dumps(name)}: {text(member, depth + 1)}" for name, member in members]
    return "{\n" + ",\n".join(lines) + f"\n{' ' * depth}}}" if lines else "{}"


def main():
    packages, listed, results = map(pathlib.Path, sys.argv[1:])
    for name, package in json.loads(listed.read_text())["packages"].items():
        (results / f"{name}.json").write_text(text(described(packages, name, package)) + "\n")


main()
