# SPDX-License-Identifier: BSD-3-Clause
"""The shapes of ./dev bench downloads. Each returns its raw values and a list of Figures."""
import contextlib
import os
import random
import statistics
import time

from perf.bench.lab import cpus
from perf.bench.peers_worlds import Nginx, Nightjar
from tests.netlab.downloader import Downloads
from tests.netlab.priority import FIRST
from tests.netlab.world import Failed, until

KIB, MIB = 1 << 10, 1 << 20
BURST_SECONDS = 0.05  # default burst of a ceiling (lib/shape/rate_limit.h)
CONNECTIONS_MAX = "12000"
PEERS = {"nightjar": Nightjar, "nginx": Nginx}


class Figure:
    """A measured value, and whether it meets its target; `met` is None without a target."""

    def __init__(self, shape, server, what, value, text, target="", met=None):
        self.shape, self.who, self.what, self.value = shape, server, what, value
        self.text, self.target, self.met = text, target, met

    def as_dict(self):
        return dict(vars(self))


def at_most(shape, server, what, value, text, limit, target, judged=True):
    return Figure(shape, server, what, value, text, target, value <= limit if judged else None)


def at_least(shape, server, what, value, text, limit, target):
    return Figure(shape, server, what, value, text, target, value >= limit)


def ms(seconds):
    return f"{seconds * 1e3:.2f} ms"


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def ratio_text(value, one, many):
    return f"{(value - 1) * 100:+.1f} % ({ms(one)} -> {ms(many)})"


def fill(world, name, n_bytes):
    """Writes a file of one random block, repeated. The content is not compared."""
    block = random.Random(1).randbytes(min(n_bytes, MIB))
    with open(os.path.join(world.root, name), "wb") as f:
        for at in range(0, n_bytes, len(block)):
            f.write(block[:n_bytes - at])


@contextlib.contextmanager
def serving(server, files, rate=None, options=(), policy=None):
    """A server that paces each response to `rate`, if given; `options` are nightjar's."""
    if rate and server == "nginx":
        world = Nginx(f"limit_rate {rate // KIB}k;")
    else:
        paced = ("--rate-per-request", f"{rate // KIB}KiB/s") if rate else ()
        world = PEERS[server](("--max-connections", CONNECTIONS_MAX, *paced, *options))
    for name, n_bytes in files.items():
        fill(world, name, n_bytes)
    if policy is not None:
        path = os.path.join(world.scratch, "policy")
        with open(path, "w") as f:
            f.write(policy)
        world.options += ["--config", path]
    with world:
        world.client("ping", "-c1", "-W5", "198.18.0.2")
        yield world


def load(world, *options, path="/f", **more):
    paths = [path] if isinstance(path, str) else path
    return Downloads(world, *options, paths=paths, cpu=cpus()[0], **(FIRST | more))


def watched(world, *options, **more):
    """(the result, the server's counters at the begin and at the end of the window)"""
    with load(world, *options, **more) as d:
        d.steady(180)
        before = world.look()
        result = d.end(900)
    return result, before, world.look()


def grown(before, after, name):
    return after["stats"].get(name, 0) - before["stats"].get(name, 0)


def times(rows):
    done = [row for row in rows if row.how == "done"]
    return {"n": len(done), "total_p50": statistics.median(r.total for r in done),
            "total_p99": quantile([r.total for r in done], .99),
            "ttfb_p50": statistics.median(r.ttfb for r in done),
            "ttfb_p99": quantile([r.ttfb for r in done], .99)}


# --- article: one client, then one more per interval, up to a hundred ---------------------------

ARTICLE_CLIENTS, ARTICLE_RATE, ARTICLE_BYTES = 100, 200 * KIB, 200 * KIB
SLOW_MAX = 1.05


def curve(rows, n_clients, n_points=25):
    """[(clients, median total, median ttfb)] of the requests with that number of clients."""
    points = {}
    for row in rows:
        if row.how == "done":
            points.setdefault((row.active - 1) * n_points // n_clients, []).append(row)
    return [(statistics.mean(r.active for r in group), statistics.median(r.total for r in group),
             statistics.median(r.ttfb for r in group))
            for _, group in sorted(points.items())]


def article_run(server, args):
    with serving(server, {"f": ARTICLE_BYTES}, ARTICLE_RATE) as world:
        with load(world, "--hold", args.alone) as d:
            alone = d.end(900).rows
        result, before, after = watched(world, "--downloads", ARTICLE_CLIENTS, "--ramp",
                                        args.ramp_ms, "--hold", args.hold)
        many = [r for r in result.rows if r.active == ARTICLE_CLIENTS]
        return {"alone": times(alone[1:]), "many": times(many),
                "curve": curve(result.rows, ARTICLE_CLIENTS),
                "busy": world.busy(before, after), "max_100ms": result["max_100ms"],
                "client_cpu": result["cpu_seconds"] / result["seconds"],
                "client_stall_us": result["stall_window_us"]}


def article(args, say):
    runs = {server: [] for server in args.peers}
    for number in range(args.rounds):
        for server in args.peers[::1 if number % 2 == 0 else -1]:
            say(f"article, round {number + 1} of {args.rounds}, {server}")
            runs[server].append(article_run(server, args))
    figures = []
    for server, rounds in runs.items():
        for key, what in (("total_p50", "response time"), ("ttfb_p50", "ttfb")):
            one, many = (statistics.median(r[x][key] for r in rounds) for x in ("alone", "many"))
            value = statistics.median(r["many"][key] / r["alone"][key] for r in rounds)
            figures.append(at_most("article", server, f"{what}, 100 clients against 1", value,
                                   ratio_text(value, one, many), SLOW_MAX, "<= +5 %",
                                   server == "nightjar"))
        worst = max(r["many"]["total_p99"] for r in rounds)
        figures.append(Figure("article", server, "response time, p99", worst, ms(worst)))
        most = max(r["max_100ms"] for r in rounds) / (ARTICLE_CLIENTS * ARTICLE_RATE / 10)
        figures.append(Figure("article", server, "most in 100 ms, of the average", most,
                              f"{most:.2f}"))
        busy = statistics.median(r["busy"] for r in rounds)
        figures.append(Figure("article", server, "CPU busy", busy, f"{busy * 100:.1f} %"))
    return runs, figures


# --- crowd: ten, then ten thousand ---------------------------------------------------------------

CROWD_RATE, CROWD_BYTES, CROWD_ERROR_MAX, CROWD_EMPTY_MAX = 20 * KIB, 4 * MIB, 0.01, 0.01
PROBE = ("--pause", 50, "--settle", 1)


def probe(world, seconds):
    """Requests of one new client after the other, with priority over the client's other work."""
    return Downloads(world, *PROBE, "--hold", seconds, paths=["/probe"], cpu=cpus()[0], **FIRST)


def crowd_run(server, n, args):
    conns = max(1, n // args.streams)
    with serving(server, {"f": CROWD_BYTES, "probe": 1000}, CROWD_RATE) as world:
        with probe(world, args.probe) as d:
            alone = times(d.end(120).rows)
        with load(world, "--downloads", n, "--connections", conns, "--ramp",
                  args.crowd_ramp_ms / n, "--settle", 3, "--hold", args.crowd_hold) as d:
            d.steady(180)
            before = world.look()
            with probe(world, args.crowd_hold - 3) as newcomer:
                within = times(newcomer.end(120).rows)
            result = d.end(900)
        after = world.look()
        errors = [rate / CROWD_RATE - 1 for rate in result.rates()]
        sizes = sorted(abs(e) for e in errors)
        wakes = grown(before, after, "shape_wakes")
        return {"n": n, "connections": conns, "alone": alone, "within": within,
                "error": {"min": min(errors), "p50": statistics.median(errors),
                          "max": max(errors), "p99_abs": quantile(sizes, .99),
                          "max_abs": sizes[-1]},
                "busy": world.busy(before, after), "wakes": wakes,
                "empty": grown(before, after, "shape_wakes_empty"),
                "retransmits": grown(before, after, "tcp_retransmit"),
                "sum_mb_s": result.rate() / 1e6, "gone": result["gone"] + result["refused"],
                "max_100ms": result["max_100ms"],
                "client_cpu": result["cpu_seconds"] / result["seconds"],
                "client_stall_us": result["stall_window_us"]}


def crowd(args, say):
    runs = {server: [] for server in args.peers}
    for n in args.crowd:
        for server in args.peers:
            say(f"crowd of {n}, {server}")
            runs[server].append(crowd_run(server, n, args))
    return runs, [figure for server in runs for run in runs[server]
                  for figure in crowd_figures(server, run)]


def crowd_figures(server, run):
    name, e = f"crowd {run['n']}", run["error"]
    mine = server == "nightjar"
    yield at_most(name, server, "each rate, min to max; |error| p99, max", e["max_abs"],
                  f"{e['min'] * 100:+.2f} to {e['max'] * 100:+.2f} %; {e['p99_abs'] * 100:.2f} %, "
                  f"{e['max_abs'] * 100:.2f} %", CROWD_ERROR_MAX, "+-1 %", mine)
    one, many = run["alone"]["ttfb_p50"], run["within"]["ttfb_p50"]
    yield at_most(name, server, "ttfb of new clients, against alone", many / one,
                  ratio_text(many / one, one, many) +
                  f", p99 {ms(run['within']['ttfb_p99'])}", SLOW_MAX, "<= +5 %", mine)
    if mine:
        share = run["empty"] / run["wakes"] if run["wakes"] else 1
        yield at_most(name, server, "empty wake-ups", share,
                      f"{share * 100:.3f} % of {run['wakes']:,}", CROWD_EMPTY_MAX, "< 1 %")
    yield Figure(name, server, "CPU busy; the client's", run["busy"],
                 f"{run['busy'] * 100:.1f} %; {run['client_cpu'] * 100:.1f} %")


# --- global: a limit of the whole server ----------------------------------------------------------

GLOBAL_RATE, REACHED_MIN = 20 * MIB, 0.99


def window_figures(shape, what, result, rate):
    burst = rate * BURST_SECONDS
    share = result.rate() / rate
    over = result["max_100ms"] - rate / 10
    yield at_least(shape, "nightjar", f"{what}: of the rate, reached", share,
                   f"{share * 100:.2f} %", REACHED_MIN, ">= 99 %")
    yield at_most(shape, "nightjar", f"{what}: most in 100 ms, beyond the rate", over,
                  f"{over / burst:+.2f} bursts", burst, "<= 1 burst")


def whole(args, say):
    say("global")
    with serving("nightjar", {"f": 64 * MIB}, options=("--rate", "20MiB/s")) as world:
        many, _, _ = watched(world, "--downloads", 64, "--connections", 8, "--hold", args.hold)
        one, _, _ = watched(world, "--hold", args.hold)
    figures = [*window_figures("global", "64 downloads", many, GLOBAL_RATE),
               *window_figures("global", "a lone one", one, GLOBAL_RATE)]
    return {"many": dict(many), "one": dict(one)}, figures


# --- share: two classes, 3 to 1 -------------------------------------------------------------------

SHARE_POLICY = """
[server]
rate = 20MiB/s
[class three]
path = /three/
rate = 15MiB/s
ceiling = 20MiB/s
[class one]
path = /one/
rate = 5MiB/s
ceiling = 20MiB/s
"""
SHARE_ERROR_MAX = 0.02


def three_to_one(what, three, one):
    off = abs(three / one / 3 - 1)
    return at_most("share", "nightjar", f"two classes, 3:1, {what}", off,
                   f"{three / one:.3f} ({off * 100:.2f} % off)", SHARE_ERROR_MAX, "+-2 %")


def share(args, say):
    say("share")
    with serving("nightjar", {}, policy=SHARE_POLICY) as world:
        for folder in ("three", "one"):
            os.mkdir(os.path.join(world.root, folder))
            fill(world, folder + "/f", 64 * MIB)
        both, _, _ = watched(world, "--downloads", 32, "--connections", 8, "--hold", args.hold,
                             path=["/three/f", "/one/f"])
        lone, _, _ = watched(world, "--hold", args.hold, path="/one/f")
        with load(world, "--downloads", 8, "--hold", args.hold + 3, path="/one/f") as many, \
                load(world, "--hold", args.hold, path="/three/f") as few:
            few, many = few.end(), many.end()
    figures = [three_to_one("16 downloads each", both.rate(0, 2), both.rate(1, 2)),
               three_to_one("1 against 8", few.rate(),
                            many.between(*few.window) / (few.window[1] - few.window[0])),
               *window_figures("share", "both", both, GLOBAL_RATE),
               *window_figures("share", "one of them alone", lone, GLOBAL_RATE)]
    return {"both": dict(both), "lone": dict(lone), "few": dict(few), "many": dict(many)}, figures


# --- client: more connections and streams of one client do not raise its rate ---------------------

CLIENT_RATE, CLIENT_CONNS, CLIENT_STREAMS, CLIENT_PART = 2 * MIB, 8, 32, 256 * KIB


def client(args, say):
    say("client")
    with serving("nightjar", {"f": CLIENT_CONNS * CLIENT_STREAMS * CLIENT_PART},
                 options=("--rate-per-client", "2MiB/s")) as world:
        parts, _, _ = watched(world, "--downloads", CLIENT_CONNS * CLIENT_STREAMS,
                              "--connections", CLIENT_CONNS, "--range", CLIENT_PART,
                              "--hold", args.hold)
        one, _, _ = watched(world, "--hold", args.hold)
    figures = [*window_figures("client", "8 x 32 ranges", parts, CLIENT_RATE),
               *window_figures("client", "one download", one, CLIENT_RATE)]
    return {"parts": dict(parts), "one": dict(one)}, figures


# --- change: a limit that changes during the downloads --------------------------------------------

CHANGE_MAX_SECONDS, CHANGE_LOOK_SECONDS, CHANGE_STEP = 0.1, 0.2, 0.01


def effect(result, at, rate):
    """Seconds from the change until the bytes of the next 200 ms match the new rate."""
    wanted = rate * CHANGE_LOOK_SECONDS
    for step in range(200):
        start = at + step * CHANGE_STEP
        n = result.between(start, start + CHANGE_LOOK_SECONDS)
        if abs(n - wanted) <= 0.1 * wanted:
            return step * CHANGE_STEP
    return 2.0


def change(args, say):
    say("change")
    rates = (5 * MIB, 20 * MIB)
    with serving("nightjar", {"f": 64 * MIB}, options=("--rate", "20MiB/s")) as world, \
            load(world, "--downloads", 64, "--connections", 8, "--hold", 5) as d:
        until_time = d.steady(60)
        changed = []
        for number, rate in enumerate(rates):
            until_time += 1.5
            until("it is time for the change", lambda: time.monotonic() >= until_time)
            changed.append(time.monotonic())
            set_limit(world, rate)
        result = d.end()
    figures = []
    for rate, at in zip(rates, changed):
        took = effect(result, at, rate)
        figures.append(at_most("change", "nightjar", f"to {rate // MIB} MiB/s: in effect after",
                               took, f"{took * 1e3:.0f} ms", CHANGE_MAX_SECONDS, "<= 100 ms"))
    return {"result": dict(result), "changed": changed}, figures


def set_limit(world, rate):
    """Sets the limit of the whole server."""
    answer = world.server.telemetry(f"/nightjar/limits,rate={rate // MIB}MiB/s")
    if not answer or "error" in answer:
        raise Failed(f"/nightjar/limits: {answer}")


# --- evil: other clients while a thousand clients do not read -------------------------------------

BOTS, VISITS, EVIL_ROUNDS, EVIL_MAX = 1000, 8000, 5, 1.1


def visits(world):
    with load(world, "--downloads", 2, "--repeat", VISITS // 2, "--hold", 60,
              path="/visit") as d:
        return [row for row in d.end(120).rows if row.how == "done"]


def still(world):
    """Whether all bots have sent a request, and the server sends nothing to them any more."""
    stats = world.look()["stats"]
    was, world.was = getattr(world, "was", None), stats["body_bytes"]
    return stats["connections"] >= BOTS and was == world.was


def evil(args, say):
    say("evil")
    with serving("nightjar", {"f": 10 * MIB, "visit": 200 * KIB},
                 options=("--send-timeout", "600s")) as world:
        runs = {"alone": [], "within": []}
        for _ in range(EVIL_ROUNDS):
            until("all connections have ended",
                  lambda: not world.look()["stats"]["connections"], 30)
            runs["alone"].append(times(visits(world)))
            with load(world, "--downloads", BOTS, "--never-read", "stop", "--settle", 0,
                      "--hold", 300):
                until("the buffers of all bots are full", lambda: still(world), 30)
                runs["within"].append(times(visits(world)))
    one, many = (statistics.median(run["total_p99"] for run in runs[k])
                 for k in ("alone", "within"))
    return runs, [at_most("evil", "nightjar", f"p99 of others beside {BOTS} bots, against alone",
                          many / one, ratio_text(many / one, one, many), EVIL_MAX, "<= +10 %")]


SHAPES = {"article": article, "crowd": crowd, "global": whole, "share": share, "client": client,
          "change": change, "evil": evil}
