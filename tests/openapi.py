# SPDX-License-Identifier: BSD-3-Clause
"""docs/api/openapi.yaml, and whether an answer has the form that it describes."""
import functools
import os

import yaml

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BASE = "/api/v1"


@functools.cache
def document():
    with open(os.path.join(REPO, "docs/api/openapi.yaml"), encoding="utf-8") as f:
        return yaml.safe_load(f)


def operations():
    """[(path, method, operation)], with the parameters that it refers to."""
    found = []
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            params = [resolve(one) for one in operation.get("parameters", ())]
            found.append((path, method, operation | ({"parameters": params} if params else {})))
    return found


def has_json(operation):
    """Is its answer an object of JSON, of a command? Else it is a stream."""
    return "application/json" in operation["responses"]["200"]["content"]


def resolve(node):
    """What a reference leads to, or the node itself."""
    while "$ref" in node:
        target = document()
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def check(path, answer, method="get", status="200"):
    """Raises an exception if the answer (an object of JSON) has not the form of its operation."""
    import jsonschema
    operation = document()["paths"][path][method]
    response = resolve(operation["responses"][status])
    schema = response["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator(schema | {"components": document()["components"]}).validate(
        answer)
