# SPDX-License-Identifier: BSD-3-Clause
"""
The shapes of ./dev bench disk. A shape has lanes: {(peer, link): function}. The function takes the
number of the round, starts a server, measures it, and returns {cell: values}. disk.py runs the
rounds.
"""
import os
import time

from perf.bench import cache
from perf.bench.apart import apart, come_near, near
from perf.bench.disk_worlds import (CONNECTIONS, GIB, KIB, MIB, PAGES, TURN_SECONDS, H2oFiles,
                                    NginxAio, NginxSendfile, NightjarVeth, OverMemif, fio,
                                    memory_free)
from tests.netlab.world import Failed, until

COLD_FILES = CONNECTIONS  # one for each connection
FILL_PASSES = 4
SPARE_BYTES = 2 * GIB  # of memory, reserved for all other uses
COLD_RATE, HOT_BYTES, HOT_CLIENTS, HOT_PAUSE_MS = MIB, 200 * KIB, 4, 10
POLICY = "[class paced]\npath = /medium/\nrequest_rate = {}KiB/s\n"
NGINX_COLD = f"location /medium/ {{ limit_rate {COLD_RATE // MIB}m; }}"
# Length and rate of a request in `leave`. The reader takes half of it on average.
LEAVE_BYTES, LEAVE_RATE = 4 * MIB, 256 * KIB
ZIPF_UNIT = 100_000  # the weight of the most popular file


def sites(args):
    """{folder: (files, bytes of each)}"""
    large, medium = args.large, args.medium
    wanted = {"large": (large[0], large[1] * MIB), "medium": (medium[0], medium[1] * MIB),
              "hot": (1, HOT_BYTES), "tiny": (1, 1)}
    needs = {"cold": ("large",), "cached": ("large",), "zipf": ("medium", "tiny"),
             "beside": ("medium", "hot"), "leave": ("medium",)}
    return {folder: wanted[folder] for folder in
            dict.fromkeys(f for shape in args.shapes for f in needs[shape])}


def mib(n_bytes):
    return f"{-(-n_bytes // MIB)}MiB"


def paced(args, site, rate):
    """A server that paces each response for a file of `medium` to `rate`."""
    world = NightjarVeth(site, ("--file-reads", args.file_reads))
    policy = os.path.join(world.scratch, "policy")
    with open(policy, "w", encoding="ascii") as f:
        f.write(POLICY.format(rate // KIB))
    world.options += ["--config", policy]
    return world


def once(world, paths):
    """Reads each path once. Cannot be repeated, so CPUs that are distant at the end are only
    reported, with near()'s keys."""
    come_near()
    return world.once(paths) | {"apart_ns": apart(), "apart_before": 0}


# --- cold: files that are not in memory -----------------------------------------------------------

def cold(args, site):
    paths = site.paths("large")
    # The second half is read into memory that the first half has used.
    halves = paths[:COLD_FILES], paths[COLD_FILES:2 * COLD_FILES]
    n_bytes = COLD_FILES * sites(args)["large"][1]

    def of(make, *options):
        def turn(_round):
            site.forget(paths)
            with make(site, *options) as world:
                return {cell: once(world, half) for cell, half in zip(("fresh", "cold"), halves)}
        return turn

    def by_fio(pages):
        def turn(_round):
            site.forget(paths)
            return {"cold": fio(site, halves[1], args.depth, pages)}
        return turn
    options = ("--file-reads", args.file_reads, "--cache", mib(n_bytes // 4))
    return {**{("fio", pages): by_fio(pages) for pages in PAGES},
            ("nightjar", "memif"): of(OverMemif, options),
            ("nightjar", "veth"): of(NightjarVeth, options),
            **{(make.name, make.link): of(make) for make in (NginxSendfile, NginxAio, H2oFiles)}}


# --- cached: one file, and many, from memory ------------------------------------------------------

def cached(args, site):
    paths, size = site.paths("large"), sites(args)["large"]
    n_bytes = size[0] * size[1]
    cache_option = ("--cache", mib(n_bytes + n_bytes // 8))

    def room(what):
        if memory_free() < n_bytes + SPARE_BYTES:
            raise Failed(f"{memory_free() / GIB:.1f} GiB of memory are free, {what} needs "
                         f"{(n_bytes + SPARE_BYTES) / GIB:.1f}: choose a smaller --large")

    def windows(world, **more):
        return {"hot": near(lambda: world.steady(paths[:1], args.seconds, **more)),
                "cached": near(lambda: world.steady(paths, args.seconds, **more))}

    def of(make):
        def turn(_round):
            site.forget(paths)
            room("a cache of all files")
            with make(site, cache_option) as world:
                world.fill(paths, FILL_PASSES)
                more = {} if make is OverMemif else {"downloads": max(len(paths), CONNECTIONS)}
                return windows(world, **more)
        return turn

    def of_peer(make):
        def turn(_round):
            room("the page cache")
            site.remember(paths)
            try:
                with make(site) as world:
                    return windows(world, downloads=max(len(paths), CONNECTIONS))
            finally:
                site.forget(paths)
        return turn
    return {("nightjar", "memif"): of(OverMemif), ("nightjar", "veth"): of(NightjarVeth),
            **{(make.name, make.link): of_peer(make) for make in (NginxSendfile, H2oFiles)}}


# --- zipf: more than the cache holds --------------------------------------------------------------

def zipf(args, site):
    """nightjar only: the other servers use the page cache, whose size is not configurable."""
    ranked = site.paths("medium")
    # The first path becomes the URL of the command line, which has the weight 1.
    weighted = ["/tiny/0", *(f"{path}={max(1, round(ZIPF_UNIT / (rank + 1)))}"
                             for rank, path in enumerate(ranked))]
    n = args.zipf_requests

    def turn(number):
        site.forget(ranked)
        world = OverMemif(site, ("--cache", mib(args.zipf_cache * MIB), "--file-reads",
                                 args.file_reads))
        log = os.path.join(world.scratch, "access")
        world.options += ["--access-log", log]
        with world:
            return {"zipf": phases(world, log, number)}

    def phases(world, log, number):
        seeds = (str(10 * number + phase) for phase in range(3))
        world.requests(weighted, n, "--seed", next(seeds))
        before = world.requests(weighted, n, "--seed", next(seeds))
        seen = until("the access log has all requests", lambda: lines_of(log, 2 * n))
        crawl = world.once(ranked)
        after = world.requests(weighted, n, "--seed", next(seeds))
        return before | {"hits": 1 - before["from_disk"], "crawl_hits": 1 - crawl["from_disk"],
                         "crawl_costs": after["from_disk"] - before["from_disk"],
                         **simulated(seen, args.zipf_cache)}
    return {("nightjar", "memif"): turn}


def lines_of(path, n):
    """The first n lines of the log, or None if it has fewer."""
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    return lines[:n] if len(lines) >= n else None


def simulated(lines, cache_mib):
    """Hit ratios of nj-cache for the same requests, one after the other, in the order in which they
    ended. Like the benchmark it counts the second half of them."""
    text, _, _ = cache.trace_of(lines)
    found = cache.simulate(cache.POLICIES, [f"{cache_mib}MiB"], ["-"], text)
    return {f"sim {policy}": row["bytes"] / 100 for (_, policy), row in found.items()}


# --- beside: hot clients, without and with cold readers -------------------------------------------

def beside(args, site):
    hot, colds = ["/hot/0"], site.paths("medium")

    def visits(world):
        """A few clients that repeatedly request a small file, with a pause after each response."""
        with world.popen(hot, "--settle", 0.2, "--hold", args.seconds, "--pause", HOT_PAUSE_MS,
                         connections=HOT_CLIENTS) as d:
            result = d.end(TURN_SECONDS)
        world.check(result)
        firsts = sorted(row.ttfb for row in result.rows if row.how == "done")
        if not firsts:
            raise Failed("no visit was completed")
        return {"rate": len(firsts) / result["seconds"],
                **{f"first_p{p}": firsts[int(len(firsts) * p / 100)] * 1e9 for p in (50, 99)}}

    def measure(world):
        alone = visits(world)
        n = args.cold_readers
        with world.popen(colds, "--hold", TURN_SECONDS, "--ramp", 1000 / n, connections=n,
                         downloads=n) as d:
            d.steady(60)
            before, began = world.look(), time.monotonic()
            within = visits(world)
            after = world.look()
            took = time.monotonic() - began
            d.kill()
        disk = (after["disk"] - before["disk"]) / took
        return {"beside": {"rate": within["rate"] / alone["rate"],
                           "first_p50": within["first_p50"] / alone["first_p50"],
                           "first_p99": within["first_p99"] / alone["first_p99"],
                           "alone_p99": alone["first_p99"], "within_p99": within["first_p99"],
                           "disk_bytes": disk}}

    def ours(_round):
        site.forget(colds)
        with paced(args, site, COLD_RATE) as world:
            return measure(world)

    def of_nginx(make):
        def turn(_round):
            site.forget(colds)
            with make(site, NGINX_COLD) as world:
                return measure(world)
        return turn
    return {("nightjar", "veth"): ours,
            **{(make.name, make.link): of_nginx(make) for make in (NginxSendfile, NginxAio)}}


# --- leave: readers at random places that reset their streams before the end ----------------------

def leave(args, site):
    paths = site.paths("medium")

    def turn(number):
        site.forget(paths)
        with paced(args, site, LEAVE_RATE) as world:
            before = world.look()
            with world.popen(paths, "--range", LEAVE_BYTES, "--leave", LEAVE_BYTES, "--seed",
                             number, "--repeat", 1, "--ramp", 1, "--hold", TURN_SECONDS,
                             connections=args.leavers, downloads=args.leavers) as d:
                result = d.end(TURN_SECONDS)
            after = world.look()
        world.check(result)
        d = {name: after[name] - before[name] for name in after}
        return {"leave": {"left": result["left"], "disk_bytes": d["disk"],
                          "never_sent": 1 - d["bodies"] / d["disk"]}}
    return {("nightjar", "veth"): turn}


SHAPES = {"cold": cold, "cached": cached, "zipf": zipf, "beside": beside, "leave": leave}
