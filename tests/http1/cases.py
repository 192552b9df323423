# SPDX-License-Identifier: BSD-3-Clause
"""All cases: malformed requests, and requests that servers have taken for others."""
import collections

from tests.http1 import (chunks, codings, hosts, interim, lengths, line_ends, names, pipelining,
                         targets, versions)

GROUPS = [module.group for module in (lengths, codings, chunks, line_ends, names, hosts, targets,
                                      versions, pipelining, interim)]
CASES = [case for group in GROUPS for case in group.cases]


def counts():
    """{group: number of cases}"""
    return collections.Counter(case.group for case in CASES)
