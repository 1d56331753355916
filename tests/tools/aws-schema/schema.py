"""Prints the Pulumi schema of some resource types of the AWS provider, read from the source of its package for Python.

    python schema.py pulumi_aws-*.whl aws:dynamodb:Table aws:lambda:Function …

The package is not installed: it is large, and what matters of it is a few files.
"""

import ast
import json
import sys
import zipfile

SCALARS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}

wheel, *wanted = sys.argv[1:]
package = zipfile.ZipFile(wheel)
version = wheel.rsplit("/", 1)[-1].split("-")[1]
types = {}


def classes(file):
    """The classes of a file of the package, by name, in their order."""
    return {node.name: node for node in ast.parse(package.read(file)).body if isinstance(node, ast.ClassDef)}


def kind(annotation, of):
    """An annotation as the schema says it."""
    if isinstance(annotation, ast.Constant):
        return kind(ast.parse(annotation.value, mode="eval").body, of)
    if isinstance(annotation, ast.Subscript):
        outer = ast.unparse(annotation.value).rsplit(".", 1)[-1]
        inner = annotation.slice
        if outer in ("Input", "Output", "Optional"):
            return kind(inner, of)
        if outer == "Sequence":
            return {"type": "array", "items": kind(inner, of)}
        if outer == "Mapping":
            return {"type": "object", "additionalProperties": kind(inner.elts[1], of)}
        if outer == "Union":
            # A text or one of some texts; an object or the same as a dictionary.
            return kind(inner.elts[0], of)
    name = ast.unparse(annotation).rsplit(".", 1)[-1]
    if name in SCALARS:
        return {"type": SCALARS[name]}
    if name in ("Archive", "Asset", "Any"):
        return {"$ref": f"pulumi.json#/{name}"}
    return of(name)


def getters(node):
    """The properties of a class: its name in Python, its name in the schema, its annotation."""
    for method in node.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        for mark in method.decorator_list:
            if ast.unparse(mark).startswith("pulumi.getter"):
                name = mark.keywords[0].value.value if isinstance(mark, ast.Call) else method.name
                yield method.name, name, method.returns


def required(node):
    """The arguments of a class, by their names in Python, that have no default."""
    init = next(it for it in node.body if isinstance(it, ast.FunctionDef) and it.name == "__init__")
    named = zip(init.args.kwonlyargs, init.args.kw_defaults)
    return {argument.arg for argument, default in named if default is None}


def inputs(node, service, nested):
    """What a class of arguments takes: its properties, and which of them it needs."""
    needed = required(node)

    def of(name):
        if not name.endswith("Args"):
            return {"type": "string"}  # One of some texts.
        short = name.removesuffix("Args")
        token = f"aws:{service}/{short[0].lower()}{short[1:]}:{short}"
        if token not in types:
            types[token] = {}
            properties, names = inputs(nested[name], service, nested)
            types[token] = {"type": "object", "properties": properties, "required": names}
        return {"$ref": f"#/types/{token}"}

    properties, names = {}, []
    for python, name, annotation in getters(node):
        properties[name] = kind(annotation, of)
        if python in needed:
            names.append(name)
    return properties, names


resources = {}
for token in wanted:
    _, service, name = token.split(":")
    # A word of Python has a line behind it there.
    folder = f"pulumi_aws/{service}_/" if service == "lambda" else f"pulumi_aws/{service}/"
    full = f"aws:{service}/{name[0].lower()}{name[1:]}:{name}"
    files = (file for file in package.namelist() if file.startswith(folder) and file.endswith(".py"))
    file = next((file for file in files if f"'{full}'," in package.read(file).decode()), None)
    if file is None:
        print(f"there is no resource of the type {token}", file=sys.stderr)
        continue
    of_file = classes(file)
    # First its arguments, whose name another class may have taken.
    properties, needed = inputs(next(iter(of_file.values())), service, classes(f"{folder}_inputs.py"))
    outputs = {
        name: kind(annotation, lambda _: {"$ref": "pulumi.json#/Any"})
        for _, name, annotation in getters(of_file[name])
        if name not in ("id", "urn")
    }
    resources[full] = {"inputProperties": properties, "requiredInputs": needed, "properties": outputs}

print(
    json.dumps(
        {
            "name": "aws",
            "version": version,
            "meta": {"moduleFormat": "(.*)(?:/[^/]*)"},
            "provider": {},
            "resources": resources,
            "types": types,
        }
    )
)
