# SPDX-License-Identifier: BSD-3-Clause
"""
docs/api/openapi.yaml agrees with the table of commands, lib/mgmt/answers.c. That the answers of a
server have its keys is in e2e/test_ctl.py.
"""
import os
import re
import unittest

from tests.package.prefix import REPO
from tests.openapi import BASE, document, has_json, operations

TABLE = os.path.join(REPO, "lib/mgmt/answers.c")
# Changes, which the listener routes by itself.
CHANGES = {(f"{BASE}/{path}", "post")
           for path in ("limits", "transfers/end", "block", "unblock", "reload", "log/reopen",
                        "capture/end", "trace/end")}
OTHERS = {f"{BASE}/diff"}  # answers that no command has


def table_text():
    with open(TABLE, encoding="utf-8") as f:
        return f.read()


def commands():
    """{name: (help, [names of parameters])}"""
    text = table_text()
    rows = re.findall(r'\{"(\w+)",\s*"([^"]*)",\s*"(?:[^"\\]|\\.)*",\s*\w+,\s*\{([^}]*)\},', text)
    return {name: (about, [param.rstrip("=") for param in re.findall(r'"([\w=]+)"', params)])
            for name, about, params in rows}


class OpenApi(unittest.TestCase):
    def test_each_command_has_a_path(self):
        table = commands()
        self.assertEqual(len(re.findall(r"nj__answer_\w+,", table_text())), len(table))
        gets = {path: operation for path, method, operation in operations()
                if method == "get" and has_json(operation)}
        self.assertEqual({BASE, *OTHERS, *(f"{BASE}/{name}" for name in table)}, set(gets))
        for name, (about, params) in table.items():
            with self.subTest(name=name):
                operation = gets[f"{BASE}/{name}"]
                self.assertEqual(about, operation["summary"])
                self.assertEqual(params, [one["name"] for one in operation.get("parameters", [])])

    def test_changes_are_posts(self):
        self.assertEqual(CHANGES, {(path, method) for path, method, _ in operations()
                                   if method != "get"})

    def test_operations_have_names(self):
        names = [operation["operationId"] for _, _, operation in operations()]
        self.assertEqual(len(names), len(set(names)))

    def test_references_and_schemas(self):
        """Each reference leads to a part of the file, and each schema is used and valid."""
        import jsonschema
        text, used = document(), set()

        def follow(node):
            for key, value in node.items() if isinstance(node, dict) else enumerate(node):
                if key == "$ref":
                    target = text
                    for part in value.removeprefix("#/").split("/"):
                        target = target[part]
                    used.add(value.split("/")[3])
                elif isinstance(value, (dict, list)):
                    follow(value)
        follow(text)
        self.assertEqual({name for part in text["components"].values() for name in part}, used)
        for name, schema in text["components"]["schemas"].items():
            with self.subTest(name=name):
                jsonschema.Draft202012Validator.check_schema(schema)


if __name__ == "__main__":
    unittest.main()
