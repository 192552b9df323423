#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C table with which the server knows these files: embed.py OUTPUT FILE.args ...
The lines of a file, which lib/config/eal_preset.h shows, become fields of struct nj_preset."""
import json
import os
import sys

OFFLOADS = {"rx-checksum": "NJ_PRESET_RX_CHECKSUM", "tx-checksum": "NJ_PRESET_TX_CHECKSUM",
            "tso": "NJ_PRESET_TSO"}
RSS = ("any", "device", "rings")
NEEDED = ("driver", "bind", "queues", "offloads", "rss", "tried", "source")
FACTS = (*NEEDED, "needs", "takes")


class Wrong(Exception):
    """The file does not have the form."""


def read_facts(name, lines):
    """Title, facts and lines of arguments."""
    title, facts, arguments = None, {}, []
    for number, line in enumerate(lines, 1):
        if line.startswith("#:"):
            key, _, value = line[2:].strip().partition(" ")
            if key not in FACTS or not value.strip() or key in facts:
                raise Wrong(f"{name}.args:{number}: expected one of each of {', '.join(FACTS)}, "
                            f"with a value, not \"{key}\"")
            facts[key] = " ".join(value.split())
        elif line.startswith("# ") and not title:
            title = line[2:].strip()
        elif line.strip() and not line.lstrip().startswith("#"):
            arguments.append(line.split())
            if len(arguments[-1]) > 2:
                raise Wrong(f"{name}.args:{number}: expected an argument, and at most one value")
    missing = [fact for fact in NEEDED if fact not in facts]
    if missing or not title or not arguments:
        raise Wrong(f"{name}.args: no {(missing or [title and 'arguments' or 'title'])[0]}")
    return title, facts, arguments


def check_values(name, facts):
    """The facts that are no text."""
    offloads = facts["offloads"].split()
    if not facts["queues"].isascii() or not facts["queues"].isdigit() or int(facts["queues"]) == 0:
        raise Wrong(f"{name}.args: queues: expected a number from 1, not \"{facts['queues']}\"")
    if facts["rss"] not in RSS:
        raise Wrong(f"{name}.args: rss: expected {', '.join(RSS)}, not \"{facts['rss']}\"")
    if offloads not in (["any"], ["none"]):
        for word in offloads:
            if word.removesuffix("?") not in OFFLOADS:
                raise Wrong(f"{name}.args: there is no offload \"{word}\"")


def devices(name, arguments):
    """(The arguments before the devices, name of the virtual device or None, its keys)."""
    arguments, vdev, keys = arguments[:], None, []
    if arguments[-1][0].startswith("--vdev="):
        vdev, *items = arguments.pop()[0].removeprefix("--vdev=").split(",")
        keys = [item.split("=", 1) for item in items]
    if arguments and arguments[-1] == ["-a", "{pci}"]:
        arguments.pop()
    elif not vdev:
        raise Wrong(f"{name}.args: expected -a {{pci}} or --vdev= at the end")
    if any(line[0] == "-a" or line[0].startswith("--vdev") for line in arguments):
        raise Wrong(f"{name}.args: expected the devices at the end")
    return arguments, vdev and vdev.rstrip("0123456789"), keys


def pairs(words):
    """A list of struct nj_preset_argument."""
    return "".join(f"{{{json.dumps(word[0])}, {json.dumps(word[1]) if word[1:] else 'NULL'}}}, "
                   for word in words) + "{NULL, NULL}"


def bits(words):
    """The offloads, as an expression in C."""
    return " | ".join(OFFLOADS[word] for word in words) or "0"


def keys_of(facts):
    """The keys of --preset NAME,KEY=VALUE: (name, is one of these needed, may it repeat)."""
    return [(word.removesuffix("..."), fact == "needs", word.endswith("..."))
            for fact in ("needs", "takes") for word in facts.get(fact, "").split()]


def entry(name, text):
    """The element of the table."""
    title, facts, arguments = read_facts(name, text.splitlines())
    check_values(name, facts)
    words = facts["offloads"].split() if facts["offloads"] not in ("any", "none") else []
    optional = [word[:-1] for word in words if word.endswith("?")]
    optional = list(OFFLOADS) if facts["offloads"] == "any" else optional
    keys = "".join(f"{{{json.dumps(key)}, {int(needed)}, {int(often)}}}, "
                   for key, needed, often in keys_of(facts))
    plain, vdev, vdev_keys = devices(name, arguments)
    source = "\n         ".join(json.dumps(line) for line in text.splitlines(keepends=True))
    return (f"    {{.name = {json.dumps(name)},\n"
            f"     .text =\n         {source},\n"
            f"     .title = {json.dumps(title)},\n"
            f"     .driver = {json.dumps(facts['driver'])},\n"
            f"     .bind = {json.dumps(facts['bind'])},\n"
            f"     .keys = (const struct nj_preset_key[]){{{keys}{{NULL, 0, 0}}}},\n"
            f"     .arguments = (const struct nj_preset_argument[]){{{pairs(plain)}}},\n"
            f"     .vdev_keys = (const struct nj_preset_argument[]){{{pairs(vdev_keys)}}},\n"
            f"     .vdev = {json.dumps(vdev) if vdev else 'NULL'},\n"
            f"     .queues = {facts['queues']},\n"
            f"     .offloads = {bits(word for word in words if not word.endswith('?'))},\n"
            f"     .offloads_optional = {bits(optional)},\n"
            f"     .rss = NJ_PRESET_RSS_{facts['rss'].upper()}}},\n")


def main(output, *files):
    with open(output, "w", encoding="ascii") as out:
        out.write('#include "config/eal_preset.h"\nconst struct nj_preset nj_preset_table[] = {\n')
        for path in files:
            with open(path, encoding="ascii") as text:
                out.write(entry(os.path.basename(path).removesuffix(".args"), text.read()))
        out.write("    {.name = NULL},\n};\n")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Wrong as wrong:
        sys.exit(str(wrong))
