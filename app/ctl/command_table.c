/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/command_table.h"

#define ANY_NUMBER 64
#define TIMEOUT_S  10
#define TOP_S      5
#define RELOAD_S   60 /* a server reads lists of networks and certificates */

const struct ctl_command ctl_commands[CTL_N_COMMANDS] = {
    [CTL_CMD_STATUS] =
        {"status", "",
         "whether the server is ready, what is wrong, and what ports, shards and classes do", 0, 0,
         TIMEOUT_S},
    [CTL_CMD_LIMITS] = {"limits", "[CHANGE...]",
                        "the limits in force. CHANGE is KEY=VALUE for the whole server, or for the "
                        "class that class=NAME before it names: limits class=video rate=5MiB/s. "
                        "Changes hold until the file has another value, or for a time: limits "
                        "--for 2h rate=5MiB/s then=10MiB/s; without then=VALUE the value before "
                        "follows",
                        0, ANY_NUMBER, TIMEOUT_S},
    [CTL_CMD_CLIENTS] = {"clients", "[limit=N] [by=bytes|streams|connections]",
                         "the clients with most", 0, 2, TIMEOUT_S},
    [CTL_CMD_CLASSES] = {"classes", "", "requests, rates and refusals of each class", 0, 0,
                         TIMEOUT_S},
    [CTL_CMD_SHARDS] = {"shards", "[shard=N]", "what each lcore has done and holds", 0, 1,
                        TIMEOUT_S},
    [CTL_CMD_TRANSFERS] = {"transfers", "[limit=N] [client=NETWORK]",
                           "running transfers, the fastest first: rate now, done, left, and why "
                           "each is not faster",
                           0, 2, TIMEOUT_S},
    [CTL_CMD_KILL] = {"kill", "ID|NETWORK",
                      "end a transfer, or all those of an address or a network", 1, 1, TIMEOUT_S},
    [CTL_CMD_BLOCKS] = {"blocks", "", "blocked networks", 0, 0, TIMEOUT_S},
    [CTL_CMD_BLOCK] = {"block", "NETWORK",
                       "refuse an address or a network, and end its transfers: block --for 10m "
                       "198.18.0.0/24. Without --for until it is unblocked or the server ends",
                       1, 1, TIMEOUT_S},
    [CTL_CMD_UNBLOCK] = {"unblock", "NETWORK", "end a block", 1, 1, TIMEOUT_S},
    [CTL_CMD_GET] = {"get", "NAME [PARAMETER=VALUE...]",
                     "the answer of GET /api/v1/NAME: stats, latency, memory, files, workers and "
                     "others; without a NAME the list of them",
                     0, ANY_NUMBER, TIMEOUT_S},
    [CTL_CMD_RELOAD] = {"reload", "",
                        "make the server read its configuration, certificates and lists again. If "
                        "they have errors, these are printed, and what is in force stays",
                        0, 0, RELOAD_S},
    [CTL_CMD_DIFF] = {"diff", "",
                      "the configuration's files against what runs: keys that a reload would "
                      "change, keys that need a restart, limits changed at run time, and blocks. "
                      "Exit status 0 if all is equal, 1 if not, 2 if the files have errors",
                      0, 0, RELOAD_S},
    [CTL_CMD_METRICS] = {"metrics", "", "the metrics, as Prometheus reads them", 0, 0, TIMEOUT_S},
    [CTL_CMD_VERSION] = {"version", "", "the version of the running server", 0, 0, TIMEOUT_S},
    [CTL_CMD_CAPTURE] =
        {"capture", "",
         "write packets to standard output, as a pcapng file: capture --client 198.18.0.5 > "
         "x.pcapng. One client at a time. Ctrl-C ends it with a complete file. Without --snaplen "
         "only headers: no bytes of requests and responses. Exit status 1 if packets were dropped",
         0, 0, TIMEOUT_S},
    [CTL_CMD_TRACE] =
        {"trace", "",
         "a line for each request when it ends: when it arrived, its class, first byte, last byte, "
         "and how long it waited for what; at the end those that still run. Exit status 1 if "
         "requests were dropped",
         0, 0, TIMEOUT_S},
    [CTL_CMD_TOP] =
        {"top", "",
         "lcores, classes, clients and refusals on the terminal, with their rates, once "
         "per second; its keys change limits, end transfers and block clients. Also: nightjar top",
         0, 0, TOP_S},
};

const struct ctl_option ctl_options[CTL_N_OPTIONS] = {
    [CTL_OPT_SOCKET] = {0, "socket", "PATH",
                        "socket of the server, or a folder with it "
                        "[/run/nightjar/nightjar.sock, or else the only socket in /run/nightjar "
                        "whose name ends with .sock]"},
    [CTL_OPT_PID] = {0, "pid", "PID",
                     "only the server of this process; without --socket or with a folder: its "
                     "socket there. Not for top"},
    [CTL_OPT_JSON] = {0, "json", "", "print JSON"},
    [CTL_OPT_TIMEOUT] = {0, "timeout", "SECONDS",
                         "how long to wait for each answer [10; reload and diff: 60; top: 5]"},
    [CTL_OPT_INTERVAL] = {0, "interval", "SECONDS", "top: time between two looks [1]"},
    [CTL_OPT_ONCE] = {'b', "once", "",
                      "top: print all once, after an interval, and exit. Needs no terminal"},
    [CTL_OPT_FOR] = {0, "for", "TIME", "block, limits: for how long: 30s, 10m, 2h, 7d"},
    [CTL_OPT_CLIENT] = {0, "client", "NETWORK",
                        "capture, trace: only packets from or to, or requests of, this address or "
                        "network [all]"},
    [CTL_OPT_PORT] = {0, "port", "N", "capture: only this DPDK port [all]"},
    [CTL_OPT_SNAPLEN] = {0, "snaplen", "BYTES",
                         "capture: bytes of a packet, at most 262144; or headers: up to the end of "
                         "the header of TCP [headers]"},
    [CTL_OPT_SECONDS] = {0, "seconds", "N", "capture, trace: for how long, at most 600 [60]"},
    [CTL_OPT_PACKETS] = {0, "packets", "N", "capture: how many at most [1000000]"},
    [CTL_OPT_REQUESTS] = {0, "requests", "N", "trace: how many at most [100000]"},
    [CTL_OPT_HELP] = {0, "help", "", "print this page and exit"},
};

const struct ctl_top_key ctl_top_keys[] = {
    {"up down k j", "select a row; also PgUp, PgDn, Home, End"},
    {"c", "classes: open and waiting responses, rate, limit, refused requests"},
    {"l", "clients with most bytes, streams or connections"},
    {"t", "transfers: client, path, rate, time left, what holds it back"},
    {"r", "refused connections and requests, and actions against clients, by reason"},
    {"s", "sort by the next column"},
    {"/", "show only rows with a text; Esc: all"},
    {"x", "end the selected transfer, after a question"},
    {"b", "block the client of the selected row for ten minutes, after a question"},
    {"e", "change limits of the selected class, as KEY=VALUE,KEY=VALUE"},
    {"+ -", "make the rate of the selected class a quarter larger, or a fifth smaller"},
    {"p", "pause, and go on"},
    {"h ?", "these keys"},
    {"q", "quit"},
    {0},
};

const struct ctl_exit_status ctl_exit_statuses[] = {
    {"0", "all is well"},
    {"1", "refused, not ready, bad files, or an incomplete capture or trace; diff: differences"},
    {"2", "an argument is invalid; diff: the files have errors"},
    {"3", "no server was found, or none answers"},
    {0},
};
