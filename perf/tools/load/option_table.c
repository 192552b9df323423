/* SPDX-License-Identifier: BSD-3-Clause */
/* `./dev options` writes man/nightjar-load.1 from this file. */
#include "option_table.h"

/* clang-format off */
const struct load_option load_option_table[] = {
    {'c', "connections", "N", "1", "connections", "Load"},
    {'m', "streams", "N", "1", "maximum of requests in flight on each connection", 0},
    {LOAD_OPTION_HTTP1, "http1", 0, 0,
     "HTTP/1.1 in place of HTTP/2; with --streams above 1 requests are pipelined", 0},
    {LOAD_OPTION_IN_FLIGHT, "in-flight", "N", 0,
     "requests in flight, over connections that take turns: allows many connections with fewer "
     "requests at once", 0},
    {'t', "threads", "N", "1",
     "threads, each with its share of the connections; over DPDK lcores, unless the EAL arguments "
     "choose them (-l)", 0},
    {'d', "duration", "TIME", "10s", "duration of the measurement, e.g. 500ms or 10s", 0},
    {'n', "requests", "N", 0, "measure N requests instead, without a warm-up", 0},
    {'w', "warm-up", "TIME", "1s", "time before the measurement", 0},
    {'r', "rate", "N", 0,
     "requests per second, sent when they are due, independent of the responses; the latency of "
     "each counts from its due time. Without --rate each response triggers the next request", 0},
    {'u', "upload", "SIZE", "GET", "POST a body of SIZE bytes, e.g. 64KiB", 0},
    {'H', "header", "'NAME: VALUE'", 0, "one more field of each request", 0},
    {LOAD_OPTION_WINDOW, "window", "SIZE", "16MiB",
     "window of a stream of HTTP/2, for responses", 0},
    {LOAD_OPTION_TIMEOUT, "timeout", "TIME", "10s",
     "time after which a request without a response is cancelled", 0},
    {LOAD_OPTION_SEED, "seed", "N", "1", "seed of the order of paths", 0},
    {LOAD_OPTION_IN_TURN, "in-turn", 0, 0,
     "each lcore requests one path after the other, without weights", 0},

    {LOAD_OPTION_PRESET, "preset", "NAME,KEY=VALUE,...", 0,
     "EAL arguments of a family of devices, as of nightjar(1), e.g. tap,iface=nj1 or "
     "ixgbe,pci=0000:03:00.0; list: print the presets and exit; NAME,help: print what a preset "
     "needs, expects and cannot do, and exit",
     "A port of DPDK, in place of the kernel's sockets"},
    {LOAD_OPTION_LINK, "addr", "ADDRESS/PREFIX", "required with a port of DPDK",
     "our address on the link; several: used in turn, each is good for 32768 connections", 0},
    {LOAD_OPTION_LINK, "gateway", "ADDRESS", 0, "router to a server that is not on the link", 0},
    {LOAD_OPTION_LINK, "vlan", "ID", "untagged", "802.1Q VLAN ID, 1 to 4094", 0},
    {LOAD_OPTION_LINK, "mtu", "N", "the device's, at most 1500",
     "MTU of IP packets, 1280 to 9000", 0},
    {LOAD_OPTION_LINK, "port", "N", "the only one", "number of the DPDK port", 0},
    {LOAD_OPTION_LINK, "no-offload", 0, 0, "checksums and segmentation in software", 0},

    {LOAD_OPTION_JSON, "json", "FILE", 0, "write all values as JSON; - is standard output",
     "Report"},
    {LOAD_OPTION_CSV, "csv", "FILE", 0,
     "write the latency distribution, a line for each bucket of 0.8 %", 0},
    {'q', "quiet", 0, 0, "no line of progress each second", 0},
    {LOAD_OPTION_VERSION, "version", 0, 0, "print the version and exit", 0},
    {'h', "help", 0, 0, "print the options and exit", 0},
};
/* clang-format on */

const uint32_t load_n_options = sizeof load_option_table / sizeof *load_option_table;

_Static_assert(sizeof load_option_table / sizeof *load_option_table < LOAD_OPTIONS_MAX,
               "raise LOAD_OPTIONS_MAX");

const char load_usage[] =
    "nightjar-load [options] URL [PATH[=N] ...]\n"
    "       nightjar-load --preset NAME,... --addr ADDRESS/PREFIX [options] URL [PATH[=N] ...]\n"
    "       nightjar-load EAL arguments -- --addr ADDRESS/PREFIX [options] URL [PATH[=N] ...]";

const char load_intro[] =
    "Repeatedly requests URL (http://HOST[:PORT]/PATH; https:// for TLS 1.3, without "
    "verification of the certificate) from an HTTP/2 or HTTP/1.1 server, and reports request rate "
    "and latency. It uses the kernel's sockets; with --preset, --addr or EAL arguments a TCP of "
    "its own over a DPDK port. HOST is an address or a name, which the system looks up: its "
    "addresses are tried in turn until one accepts a connection. Further PATHs of the same server "
    "are requested, too; PATH=N is requested N times as often as URL. (A path that itself ends in "
    "=N needs a weight behind it.)";

const char load_outro[] =
    "A thread takes its share of the connections. Lcores of DPDK poll all the time; threads with "
    "sockets wait for events.";

const char load_example[] =
    "nightjar-load -c 16 -m 32 https://www.example.org/index.html\n"
    "nightjar-load --preset tap,iface=nj1 --addr 198.18.0.1/24 -c 16 http://198.18.0.2/\n"
    "nightjar-load --no-pci --vdev=net_memif0,role=client,socket=/run/m,socket-abstract=no -l 1 "
    "\\\n"
    "  -- --addr 198.18.0.1/24 -c 16 -m 32 http://198.18.0.2/index.html";
