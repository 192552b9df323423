# SPDX-License-Identifier: BSD-3-Clause
"""
The targets for nightjar's speed, compared with the results of runs. One target is a line of the
page:

    Target("16x32 ...", ">= 0.7 M", reached="0.71 M", met=True)    # met None: not measured
"""
import collections

Target = collections.namedtuple("Target", "what wanted reached met")
SMALL = ("1x1", "1x100", "16x32", "1000x1")
DOWNLOADS = ("200KiB", "10MiB")
ATTACKS, ATTACK_RATIO = ("slowloris", "slow-post", "idle", "flood"), 1.2


class Results:
    """Access to the rows of all runs."""

    def __init__(self, runs):
        self.runs = {run["bench"]: run for run in runs}

    def rows(self, bench):
        return self.runs[bench]["rows"] if bench in self.runs else []

    def row(self, bench, shape, link=None, peer="nightjar"):
        return next((row for row in self.rows(bench) if row["shape"] == shape and
                     row["peer"] == peer and link in (None, row["link"])), None)

    def median(self, value, bench, shape, link=None, peer="nightjar"):
        row = self.row(bench, shape, link, peer)
        return row["values"][value]["median"] if row and value in row["values"] else None

    def ours(self, value, shape, link):
        """The median from bench serve, or from bench peers if serve has none."""
        found = self.median(value, "serve", shape, link)
        return self.median(value, "peers", shape, link) if found is None else found

    def peers(self):
        return list(dict.fromkeys(row["peer"] for row in self.rows("peers")
                                  if row["peer"] != "nightjar"))


def at_least(what, wanted, value, text, unit=""):
    return Target(what, f">= {text(wanted)}{unit}", reached(value, text, unit),
                  None if value is None else value >= wanted)


def at_most(what, wanted, value, text, unit=""):
    return Target(what, f"<= {text(wanted)}{unit}", reached(value, text, unit),
                  None if value is None else value <= wanted)


def reached(value, text, unit):
    return "not measured" if value is None else f"{text(value)}{unit}"


def ratio(a, b):
    return a / b if a is not None and b else None


def twofold(x):
    return f"{x:.2f}"


def millions(x):
    return f"{x / 1e6:.3f}"


def beside_h2o(r, shape):
    """Both values are from bench peers, whose servers alternate."""
    return ratio(r.median("full", "peers", shape, "memif"),
                 r.median("full", "peers", shape, "veth", "h2o"))


def share(r, frame, link):
    row = r.row("echo", frame, link, "testpmd macswap")
    return row["share"] if row else None


def best_of_kernel(r, shape):
    """Bytes per CPU-second of the best peer, over a veth pair with TSO or without."""
    found = [row["values"]["bytes_full"]["median"] for row in r.rows("peers")
             if row["shape"] == shape and row["peer"] != "nightjar" and
             row["link"].startswith("veth") and "bytes_full" in row["values"]]
    return max(found, default=None)


def beside(target, value, text):
    """The target with a second value in parentheses."""
    return target if value is None else target._replace(
        reached=f"{target.reached} ({text(value)})")


def two_lcores(r):
    """Also shows the ratio of the minima: other guests of the host may disturb minutes of a run."""
    def worst(name, of):
        return max((row["values"][name][of] for row in r.rows("exchange")
                    if name in row["values"]), default=None)

    target = at_most("cycles per request on 2 lcores against 1, without a device, the worst shape",
                     1.05, worst("against_one", "median"), lambda x: f"{x:.3f}", " x")
    return beside(target, worst("least_against_one", "max"),
                  lambda x: f"by the least of all rounds: {x:.3f} x")


def same_veth(r, shape):
    """Also shows the share of the device's transmit function, whose system calls send packets."""
    mine = r.median("ns", "peers", shape, "veth")
    target = at_most(f"{shape} over the same veth as h2o, CPU per request against h2o's", 1,
                     ratio(mine, r.median("ns", "peers", shape, "veth", "h2o")), twofold, " x")
    device = ratio(r.median("device_ns", "peers", shape, "veth"), mine)
    return beside(target, device, lambda x: f"{x:.0%} of it in the device's transmit function")


def half_load(r):
    """Also shows the floor: the p99.9 of an idle loop, from stalls by other load of the machine."""
    target = at_most("16x32 at half load: p99.9 against p50", 10, r.ours("spread", "half", "memif"),
                     lambda x: f"{x:.1f}", " x")
    floor = ratio(r.ours("floor", "half", "memif"), r.ours("p50", "half", "memif"))
    return beside(target, floor, lambda x: f"the floor of this machine: {x:.1f} x")


def beside_attack(r, attack):
    """Also shows by how much p99 grew."""
    what = f"{attack} over HTTP/1.1 at half load: p99 of other clients against p99 without"
    row = r.row("attacks", attack)
    noisy = row is not None and row.get("noisy", False)
    value = None if noisy else r.median("ratio_p99", "attacks", attack)
    target = at_most(what, ATTACK_RATIO, value, twofold, " x")
    alone, under = (r.median(name, "attacks", attack) for name in ("p99_alone", "p99"))
    return beside(target, under - alone if under is not None else None,
                  lambda ns: f"{ns / 1e3:+.1f} us")


def targets(r):
    found = [
        at_least("1000x1 over memif against h2o over veth, requests per core-second", 12,
                 beside_h2o(r, "1000x1"), twofold, " x"),
        at_least("16x32 over memif, requests per core-second", 0.7e6,
                 r.ours("full", "16x32", "memif"), millions, " M"),
        at_least("16x32 over memif against h2o over veth, requests per core-second", 2,
                 beside_h2o(r, "16x32"), twofold, " x"),
        at_most("1x1 over memif, round trip, p50", 8000, r.ours("p50", "1x1", "memif"),
                lambda ns: f"{ns / 1e3:.1f}", " us"),
        at_least("1000x1 over memif, as a share of the echo rate (frames of 80 bytes)", 0.2,
                 share(r, "80", "memif"), twofold),
        at_least("10MiB over memif, as a share of the echo's bytes (frames of 1,514)", 0.9,
                 share(r, "1514", "memif"), twofold),
    ]
    found += [at_least(f"{shape} with TSO over virtio against the best peer over veth, with TSO or "
                       "without: bytes per core-second", 1,
                       ratio(r.ours("bytes_full", shape, "virtio"), best_of_kernel(r, shape)),
                       twofold, " x") for shape in DOWNLOADS]
    found += [same_veth(r, shape) for shape in SMALL + DOWNLOADS]
    found += [
        at_least("requests per core-second over 100,000 connections against 1,000", 0.8,
                 ratio(r.ours("full", "100kx1", "memif"), r.ours("full", "1000x1", "memif")),
                 twofold, " x"),
        half_load(r),
        two_lcores(r),
    ]
    found += [beside_attack(r, attack) for attack in ATTACKS]
    return found


def behind(r):
    """[(ratio, text)] of every peer and shape where nightjar is not faster, the slowest first."""
    found = []
    for row in r.rows("peers"):
        if row["peer"] == "nightjar":
            continue
        for link in ("memif", "veth"):
            mine = r.median("full", "peers", row["shape"], link)
            by = ratio(mine, row["values"]["full"]["median"])
            if by is not None and by <= 1:
                found.append((by, f"{row['shape']}: nightjar over {link} does {by:.2f} x what "
                              f"{row['peer']} over {row['link']} does in a core-second"))
    return sorted(found)
