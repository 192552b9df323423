/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all options and keys, in the order of --help. `./dev options` writes from it
 * docs/options.md, man/nightjar.1 and man/nightjar.conf.5. */
#include "config/option_table.h"

#include <stdio.h>
#include <string.h>

#include <nightjar/server.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "base/units.h"
#include "sched/fiber.h"

/* Designators of struct nj_option that depend on the kind, for field `f`. */
#define AT(f)                                                                                      \
    .width = sizeof(((struct nj_server_config *)0)->f),                                            \
    .offset = offsetof(struct nj_server_config, f)
#define TEXT(f)   .kind = NJ_OPTION_TEXT, AT(f)
#define SWITCH(f) .kind = NJ_OPTION_SWITCH, AT(f)
#define LIST(f)                                                                                    \
    .kind = NJ_OPTION_LIST, AT(f), .max = NJ_ARRAY_LEN(((struct nj_server_config *)0)->f)
#define WORD(f, first, last, words)                                                                \
    .kind = NJ_OPTION_WORD, AT(f), .min = first, .max = last, .expected = words
#define NUMBER(f, least, most, noun)                                                               \
    .kind = NJ_OPTION_NUMBER, AT(f), .min = least, .max = most, .expected = noun
#define SIZE(f, least, most, noun)                                                                 \
    .kind = NJ_OPTION_SIZE, AT(f), .min = least, .max = most, .expected = noun, .value = "SIZE"
#define TIME(f, least)                                                                             \
    .kind = NJ_OPTION_TIME, AT(f), .min = least, .max = 86400,                                     \
    .expected = "a time such as 500ms or 10s", .value = "TIME"
#define RELOADS              .reload = NJ_RELOAD_TAKES
/* The policy has a key for it, whose limits do not stand in the configuration. */
#define IN_POLICY(where, as) .section = where, .key = as, .in_policy = true, RELOADS
/* A key without an option. */
#define KEY_AT(where, as, form)                                                                    \
    .name = as, .section = where, .key = as, .kind = NJ_OPTION_KEY, .value = form
#define KEY(where, as, form) KEY_AT(where, as, form), RELOADS
/* Limits that can be "none". */
#define SOME(f)              NUMBER(f, 1, 1 << 30, "a number"), .may_be_none = true, .value = "N"
#define SOME_RATE(f)                                                                               \
    .kind = NJ_OPTION_RATE, AT(f), .min = 1, .max = NJ_RATE_MAX, .expected = NJ_RATE_SYNTAX,       \
    .may_be_none = true, .value = "RATE"
#define SOME_BYTES(f) SIZE(f, 1, NJ_BYTES_MAX, "a size such as 64KiB or 10MiB"), .may_be_none = true

#define CACHE_MAX ((double)(1ull << 44)) /* 16 TiB */

/* clang-format off */
const struct nj_option nj_options[] = {
    {.name = "preset", .group = "eal", .section = "eal", .may_repeat = true,
     .kind = NJ_OPTION_EAL, .value = "NAME,KEY=VALUE,...",
     .help = "EAL arguments for a family of devices, and what to expect of the port, e.g. "
             "ixgbe,pci=0000:03:00.0 or tap,iface=nj0; list: print the presets and exit; "
             "NAME,help: print what a preset needs, expects and cannot do, and exit"},
    {KEY_AT("eal", "arguments", "ARGUMENT ..."), .may_repeat = true,
     .help = "arguments of DPDK's EAL, separated by spaces; on the command line they stand before "
             "the --. There, an argument replaces those of its name in the file; -l, -c, --lcores "
             "and --coremask count as one name, and so do the devices: -a, -b, --vdev, --preset"},
    {.name = "print-preset", .kind = NJ_OPTION_EAL, .value = "NAME,KEY=VALUE,...",
     .help = "print the EAL arguments of a preset and exit"},

    {.name = "port", .group = "network", .section = "network", LIST(port), .value = "N[=LCORES]",
     .help = "DPDK port number, needed if the EAL finds several ports. Each lcore polls one port: "
             "the listed lcores (=4-7), or an equal share of the lcores that no port lists. With "
             "several ports, append @N to a value of --addr, --gateway, --route, --neighbour or "
             "--vlan to select the port"},
    {.name = "addr", .section = "network", LIST(addr), .value = "ADDRESS/PREFIX|auto6",
     .default_text = "required",
     .help = "address of the server, IPv4 or IPv6, at most 8 per port; without @N: for the first "
             "port; auto6: IPv6 addresses by router advertisements (SLAAC)"},
    {.name = "gateway", .section = "network", LIST(gateway), .value = "ADDRESS",
     .default_text = "IPv6: from router advertisements",
     .help = "default router, one for each address family"},
    {.name = "route", .section = "network", LIST(route), .value = "NETWORK/PREFIX=ADDRESS",
     .help = "router for a network, at most 16 per port"},
    {.name = "neighbour", .section = "network", LIST(neighbour), .value = "ADDRESS=MAC",
     .help = "static neighbour entry, usually for a gateway: ARP and neighbour discovery cannot "
             "change it; at most 7 per port"},
    {.name = "vlan", .section = "network", LIST(vlan), .value = "ID", .default_text = "untagged",
     .help = "802.1Q VLAN ID, 1 to 4094"},
    {.name = "mtu",
     .section = "network", NUMBER(mtu, NJ_MTU_MIN, NJ_MTU_MAX, "a number of bytes"), .value = "N",
     .default_text = "the device's, at most 1500", .help = "IP MTU in bytes"},
    {.name = "listen", .section = "network", NUMBER(listen_port, 1, 65535, "a port"),
     .value = "PORT",
     .default_text = "80", .help = "TCP port"},
    {.name = "proxy-protocol", .section = "network", LIST(proxy_protocol), .value = "PORT",
     .help = "each connection to this port, that of --listen or --tls-port, begins with a header "
             "of the PROXY protocol, version 1 or 2, which names the client; only from trusted "
             "proxies"},
    {.name = "no-http1", .section = "network", SWITCH(no_http1),
     .help = "refuse HTTP/1.x: 505, or no_application_protocol in TLS"},
    {.name = "rx-ring",
     .section = "network", NUMBER(rx_ring, NJ_RING_MIN, NJ_RING_MAX, "a number of descriptors"),
     .value = "N", .default_text = "1024", .help = "descriptors per receive queue"},
    {.name = "tx-ring",
     .section = "network", NUMBER(tx_ring, NJ_RING_MIN, NJ_RING_MAX, "a number of descriptors"),
     .value = "N", .default_text = "1024", .help = "descriptors per transmit queue"},
    {.name = "rss-key", .section = "network", TEXT(rss_key), .value = "HEX",
     .default_text = "random",
     .help = "RSS key that spreads connections over lcores, 80 hexadecimal digits; for use with "
             "other equipment that needs it"},
    {.name = "no-offload", .section = "network", SWITCH(no_offload),
     .help = "compute checksums in software"},
    {.name = "newreno", .section = "network", SWITCH(newreno),
     .help = "use NewReno congestion control in place of CUBIC"},
    {.name = "no-ecn", .section = "network", SWITCH(no_ecn), .help = "disable ECN (RFC 3168)"},
    {KEY_AT("listen NAME", "port", "PORT"),
     .help = "TCP port of a listener; 80, or 443 with tls = yes. A file has up to 8 such sections, "
             "in place of [network] listen and proxy_protocol, [tls] port, and their options"},
    {KEY_AT("listen NAME", "address", "ADDRESS|any"),
     .help = "one address of the server, which then goes before a listener for any address at the "
             "port; any: all of them"},
    {KEY_AT("listen NAME", "tls", "yes|no"),
     .help = "clients are served with TLS 1.3, by the certificates of [tls] and of sites"},
    {KEY_AT("listen NAME", "proxy_protocol", "yes|no"),
     .help = "each connection begins with a header of the PROXY protocol, version 1 or 2, which "
             "names the client; only from trusted proxies"},

    {.name = "tls-cert", .group = "tls", .section = "tls", .key = "cert", LIST(tls_cert),
     .value = "FILE", .reload = NJ_RELOAD_VALUE,
     .help = "certificate chain in PEM; clients are served with TLS 1.3 on --tls-port. Each needs "
             "its --tls-key, in the same order"},
    {.name = "tls-key", .section = "tls", .key = "key", LIST(tls_key), .value = "FILE",
     .reload = NJ_RELOAD_VALUE,
     .help = "private key in PEM of the certificate at the same position"},
    {.name = "tls-port", .needs = "tls-cert",
     .section = "tls", .key = "port", NUMBER(tls_port, 1, 65535, "a port"),
     .value = "PORT",
     .default_text = "443", .help = "TCP port of TLS"},
    {.name = "tls-ocsp", .section = "tls", .key = "ocsp", LIST(tls_ocsp), .value = "FILE",
     RELOADS,
     .help = "OCSP response in DER about one of the certificates; clients get it until its "
             "nextUpdate"},
    {.name = "tls-client-ca", .section = "tls", .key = "client_ca", TEXT(tls_client_ca),
     .value = "FILE", RELOADS,
     .help = "certificates of authorities in PEM: clients must have a certificate of one of them"},
    {.name = "tls-client-optional", .section = "tls",
     .key = "client_optional", SWITCH(tls_client_optional), RELOADS,
     .help = "with --tls-client-ca: accept clients without a certificate, too"},
    {.name = "keylog", .section = "tls", TEXT(tls_keylog), .value = "FILE",
     .help = "append the secrets of all TLS connections to a file, to decrypt captures with "
             "Wireshark; needs --insecure-keylog"},
    {.name = "insecure-keylog", .needs = "keylog", .section = "tls", SWITCH(insecure_keylog),
     .help = "consent to --keylog: whoever reads the file can decrypt all connections"},

    {.name = "root", .group = "files", .section = "files", TEXT(root), .value = "DIR",
     .help = "folder to serve"},
    {.name = "index", .section = "files", TEXT(index), .value = "NAME",
     .default_text = "index.html", .help = "index file of a folder"},
    {.name = "listing", .section = "files", SWITCH(listing),
     .help = "list folders without an index file, as HTML or JSON"},
    {.name = "no-precompressed", .section = "files", SWITCH(no_precompressed),
     .help = "do not send FILE.br, FILE.zst or FILE.gz in place of FILE"},
    {.name = "mime-types", .section = "files", TEXT(mime_types), .value = "FILE",
     .help = "content types (mime.types) that override the built-in table"},
    {.name = "default-type", .section = "files", TEXT(default_type), .value = "TYPE",
     .default_text = "application/octet-stream",
     .help = "content type of files with an unknown extension, e.g. text/plain"},
    {.name = "charset", .section = "files", .default_text = "none",
     WORD(charset, NJ_CHARSET_NONE, NJ_CHARSET_UTF_8, "none|utf-8"),
     .help = "charset parameter of text types that have none; set it if all text files are UTF-8"},
    {.name = "dotfiles", .section = "files", TEXT(dotfiles), .value = "NAME,...",
     .default_text = ".well-known,.treeinfo,.discinfo",
     .help = "names that begin with a dot and are served, at most 16; none: no such name"},
    {.name = "cache-control", .section = "files", TEXT(cache_control), .value = "VALUE",
     .default_text = "none", .help = "Cache-Control header field of files, e.g. max-age=3600"},
    {.name = "error-page", .section = "files", LIST(error_page), .value = "STATUS=/FILE",
     .help = "file below the root to send with a status, e.g. 404=/404.html"},
    {.name = "symlinks", .section = "files", .default_text = "beneath",
     WORD(symlinks, NJ_SYMLINKS_NONE, NJ_SYMLINKS_BENEATH, "none|owner|beneath"),
     .help = "symbolic links to follow: none, those to files of the link's owner, or those that "
             "stay below the root; targets must be relative"},

    {.name = "cache", .group = "storage",
     .section = "storage", .may_be_zero = true,
     SIZE(cache_bytes, 1 << 20, CACHE_MAX, "a size such as 64MiB or 1GiB"),
     .default_text = "1GiB", .help = "memory for file contents, e.g. 512MiB"},
    {.name = "file-reads", .section = "storage", .default_text = "auto",
     WORD(file_reads, NJ_FILE_READS_AUTO, NJ_FILE_READS_THREADS, "auto|direct|buffered|threads"),
     .help = "how to read large files: io_uring bypassing the page cache, io_uring through it, or "
             "threads; auto: direct if available, else threads"},
    {.name = "serve-private", .section = "storage", SWITCH(serve_private),
     .help = "with --user root, also serve files that other users cannot read; without it: 403"},

    {.name = "max-body", .group = "limits", .section = "limits", SOME_BYTES(max_body),
     RELOADS,
     .default_text = "set by the route", .help = "maximum request body; above: 413"},
    {.name = "max-header-size", .section = "limits",
     SIZE(max_header_size, 1024, 32 * 1024, "a size"), .default_text = "32KiB",
     .help = "maximum size of a request header; above: 431"},
    {.name = "max-headers", .section = "limits", NUMBER(max_headers, 8, 128, "a number"),
     .value = "N", .default_text = "128",
     .help = "maximum number of header fields; above: 431"},
    {.name = "preface-timeout", .section = "limits", RELOADS, TIME(preface_timeout_s, 0.1),
     .default_text = "10s",
     .help = "maximum time until a new connection sends its first bytes"},
    {.name = "header-timeout", .section = "limits", RELOADS, TIME(header_timeout_s, 0.1),
     .default_text = "10s",
     .help = "maximum time to receive a request header, another frame (except DATA of an open "
             "request), or, without an open request, a TLS record"},
    {.name = "body-timeout", .section = "limits", RELOADS, TIME(body_timeout_s, 0.1),
     .default_text = "60s",
     .help = "maximum time without progress of a request body; with an open request, also to "
             "receive a TLS record"},
    {.name = "min-upload-rate", .section = "limits", RELOADS, SOME_RATE(min_upload_rate),
     .default_text = "500B/s",
     .help = "minimum average rate of a request body over --body-timeout"},
    {.name = "body-deadline", .section = "limits", RELOADS, TIME(body_deadline_s, 0.1),
     .default_text = "1h", .help = "maximum time from a request to the end of its body"},
    {.name = "send-timeout", .section = "limits", RELOADS, TIME(send_timeout_s, 0.1),
     .default_text = "60s",
     .help = "maximum time a response may stall (time spent paced does not count)"},
    {.name = "min-rate", .section = "limits", RELOADS, SOME_RATE(min_rate), .default_text = "none",
     .help = "minimum average rate of a response over --send-timeout"},
    {.name = "idle-timeout", .section = "limits", RELOADS, TIME(idle_timeout_s, 0.1),
     .default_text = "75s",
     .help = "maximum time a connection may have no running request"},
    {.name = "max-connections", .section = "limits", NUMBER(conns_max, 1, 1 << 24, "a number"),
     .value = "N",
     .default_text = "65536", .help = "maximum TCP connections per lcore"},

    {.name = "access-log", .group = "log", .section = "log", TEXT(access_log), .value = "FILE",
     .reload = NJ_RELOAD_VALUE,
     .default_text = "none",
     .help = "log one line per request; -: standard output"},
    {.name = "log-format", .needs = "access-log", .section = "log", RELOADS,
     .default_text = "combined",
     WORD(log_format, NJ_LOG_COMBINED, NJ_LOG_LOGFMT, "combined|json|logfmt"),
     .help = "format of the access log"},

    {.name = "user", .group = "user", .section = "user", .key = "name", TEXT(user),
     .value = "NAME[:GROUP]",
     .default_text = "as root: nightjar if it exists, else nobody",
     .help = "user to become when the ports are open; files are then opened as this user; root: "
             "keep all privileges"},

    {.name = "drain-timeout", .group = "process", .section = "process", TIME(drain_timeout_s, 0),
     RELOADS,
     .default_text = "10s",
     .help = "time for running responses after SIGTERM, SIGINT or SIGQUIT, e.g. 500ms"},
    {.name = "upgrade-socket", .section = "process", TEXT(upgrade_socket), .value = "PATH",
     .default_text = "none",
     .help = "take over from the server that listens at PATH, if there is one, without refusing a "
             "connection; then listen there for the next process (tap and net_af_packet only)"},
    {.name = "upgrade-timeout", .needs = "upgrade-socket",
     .section = "process", TIME(upgrade_timeout_s, 0),
     .default_text = "1h",
     .help = "time for running responses after another process has taken over"},
    {.name = "workers", .section = "process", NUMBER(workers, 1, NJ_WORKERS_MAX, "a number"),
     .value = "N",
     .default_text = "one per CPU without an lcore, at most 4",
     .help = "threads for OS_BLOCKING handlers"},
    {.name = "fibers", .section = "process", NUMBER(fibers_max, 1, NJ_FIBERS_MAX, "a number"),
     .value = "N",
     .default_text = "256", .help = "maximum waiting handlers per lcore"},
    {.name = "strategy",
     .section = "process", WORD(strategy, NJ_RUN_EWYK, NJ_RUN_PEC, "ewyk|pc|pec"),
     .default_text = "ewyk",
     .help = "where handlers run: ewyk (by their type), or for comparison pc (all inline) or pec "
             "(all on workers)"},
    {.name = "idle", .hidden_by = "busy-poll",
     .section = "process", WORD(idle, NJ_IDLE_SLEEP, NJ_IDLE_INTERRUPT,
     "sleep|spin|pause|interrupt"),
     .default_text = "sleep",
     .help = "what an idle lcore does: sleep (up to 1 ms; with a tap or veth until a packet "
             "arrives), spin (poll), pause (poll at low power, if the CPU can), interrupt (wait "
             "for a receive interrupt, if the NIC has them)"},
    {.name = "busy-poll", .section = "process", SWITCH(busy_poll), .help = "same as --idle spin"},
    {.name = "live", .section = "process", SWITCH(live),
     .help = "print rates every second, if stderr is a terminal"},

    {.name = "management-socket", .group = "management", .section = "management", .key = "socket",
     TEXT(management_socket), .value = "PATH|none",
     .default_text = "/run/nightjar/nightjar.sock, if possible",
     .help = "Unix socket of the management listener, which speaks HTTP/1.1; who may write to the "
             "file may do everything"},
    {.name = "management-listen", .section = "management", .key = "listen",
     LIST(management_listen), .value = "ADDRESS:PORT",
     .help = "address of the kernel where the management listener serves metrics, health and "
             "readiness, e.g. 127.0.0.1:9180 or [::1]:9180; a loopback address with a token "
             "serves everything"},
    {.name = "management-token", .section = "management", .key = "token",
     TEXT(management_token), .value = "FILE", RELOADS,
     .help = "file with the token that permits everything at loopback addresses: one line of 16 "
             "to 512 characters; other users must not be able to read it"},
    {.name = "management-read-token", .section = "management", .key = "read_token",
     TEXT(management_read_token), .value = "FILE", RELOADS,
     .help = "the same, for reading only"},
    {.name = "ready-stall", .section = "management", RELOADS,
     .kind = NJ_OPTION_TIME, AT(ready_stall_s), .min = 0.1, .max = 5,
     .expected = "a time such as 300ms", .value = "TIME", .default_text = "300ms",
     .help = "an lcore that has not polled for so long makes /ready fail"},

    {.name = "rate", .group = "policy", IN_POLICY("server", "rate"), SOME_RATE(rate),
     .default_text = "none",
     .help = "rate of the whole server, e.g. 20MiB/s or 100Mbit/s"},
    {KEY("server", "ceiling", "RATE"), .help = "maximum rate of the server; default: its rate"},
    {KEY("server", "burst", "SIZE"), .help = "bytes that may be sent at once after a pause"},
    {KEY("server", "allow", "LIST,..."), .help = "only addresses on these lists are accepted"},
    {KEY("server", "deny", "LIST,..."),
     .help = "addresses on these lists are refused, also if allow has them"},
    {KEY("server", "deny_action", "drop|reset|forbid"), .help = "how: no reply, RST, or 403"},
    {.name = "rate-per-client", IN_POLICY("class default", "client_rate"),
     SOME_RATE(rate_per_client), .default_text = "none",
     .help = "rate of one client address (IPv6: one /64), over all its connections; if there are "
             "classes, in each class"},
    {.name = "rate-per-request", IN_POLICY("class default", "request_rate"),
     SOME_RATE(rate_per_request), .default_text = "none",
     .help = "rate of one response"},
    {.name = "rate-after", IN_POLICY("class default", "rate_after"), SOME_BYTES(rate_after),
     .default_text = "no bytes",
     .help = "first bytes of a response that --rate-per-request does not limit"},
    {.name = "connections-per-client", IN_POLICY("class default", "connections"),
     SOME(connections_per_client), .default_text = "none",
     .help = "open connections of one client"},
    {.name = "streams-per-client", IN_POLICY("class default", "streams"),
     SOME(streams_per_client), .default_text = "none",
     .help = "open requests of one client"},
    {.name = "requests-per-client", IN_POLICY("class default", "requests"),
     SOME(requests_per_client), .default_text = "none",
     .help = "requests per second of one client; above: 429"},
    {.name = "trusted-proxy", IN_POLICY("client", "trusted_proxy"), LIST(trusted_proxy),
     .value = "NETWORK",
     .help = "proxies whose connections count for no client and who may name clients in a header, "
             "e.g. 10.0.0.0/8"},
    {KEY("client", "by", "address|header NAME|cookie NAME"), .help = "what identifies a client"},
    {KEY("client", "prefix4", "N"),
     .help = "bits of an IPv4 address that identify a client, 8 to 32"},
    {KEY("client", "prefix6", "N"),
     .help = "bits of an IPv6 address that identify a client, 16 to 128"},
    {KEY("list NAME", "networks", "NETWORK,..."), .may_repeat = true,
     .help = "addresses and networks of the list"},
    {KEY("list NAME", "file", "FILE"), .may_repeat = true,
     .help = "file with one of them per line; relative to the folder of this file"},
    {KEY("class NAME", "path", "PREFIX,..."), .may_repeat = true,
     .help = "paths that begin like this, after decoding"},
    {KEY("class NAME", "host", "NAME,..."), .may_repeat = true,
     .help = "hosts of requests, without port"},
    {KEY("class NAME", "list", "LIST,..."), .may_repeat = true,
     .help = "clients on one of these lists"},
    {KEY("class NAME", "header", "NAME: VALUE"),
     .help = "requests with this field; NAME alone: with any value"},
    {KEY("class NAME", "tls_subject", "TEXT"),
     .help = "clients with a certificate of this subject (RFC 4514); *: of any"},
    {KEY("class NAME", "hours", "HH:MM-HH:MM"), .help = "the class exists in these hours only"},
    {KEY("class NAME", "rate", "RATE"),
     .help = "guaranteed rate of the class; without ceiling, its maximum, too"},
    {KEY("class NAME", "ceiling", "RATE"),
     .help = "maximum rate of the class, with the unused rate of others"},
    {KEY("class NAME", "burst", "SIZE"), .help = "bytes that may be sent at once after a pause"},
    {KEY("class NAME", "client_rate", "RATE"), .help = "rate of a client in the class"},
    {KEY("class NAME", "client_ceiling", "RATE"), .help = "its maximum"},
    {KEY("class NAME", "client_burst", "SIZE"),
     .help = "bytes that a client may get at once after a pause"},
    {KEY("class NAME", "request_rate", "RATE"), .help = "rate of a response"},
    {KEY("class NAME", "request_ceiling", "RATE"), .help = "its maximum"},
    {KEY("class NAME", "request_burst", "SIZE"),
     .help = "bytes of a response that may be sent at once after a pause"},
    {KEY("class NAME", "rate_after", "SIZE"),
     .help = "first bytes of a response that request_rate does not limit"},
    {KEY("class NAME", "connections", "N"),
     .help = "open connections of an address; in [class default] only"},
    {KEY("class NAME", "streams", "N"), .help = "open requests of a client"},
    {KEY("class NAME", "requests", "N"), .help = "requests of a client per second; above: 429"},
    {KEY("class NAME", "requests_burst", "N"),
     .help = "requests of a client at once after a pause"},
    {KEY("class NAME", "action", "serve|drop|reset|forbid|429"),
     .help = "what happens to requests of the class"},
    {KEY("class NAME", "retry_after", "TIME"), .help = "of the action 429"},
    {KEY("site NAME", "name", "NAME,..."), .group = "sites", .may_repeat = true,
     .help = "more names of the site. [path NAME PATH] has the other keys, for what is below a "
             "path"},
    {KEY("site NAME", "cert", "FILE"), .may_repeat = true,
     .help = "certificate chain in PEM, in place of those of [tls]; in [site NAME] only. Each "
             "needs its key, in the same order"},
    {KEY("site NAME", "key", "FILE"), .may_repeat = true,
     .help = "private key in PEM of the certificate at the same position; in [site NAME] only"},
    {KEY("site NAME", "client_ca", "FILE|none"),
     .help = "authorities of client certificates, in place of [tls] client_ca; in [site NAME] "
             "only"},
    {KEY("site NAME", "client_optional", "yes|no"),
     .help = "accept clients without a certificate, too; in [site NAME] only"},
    {KEY("site NAME", "client_cert", "required|none"),
     .help = "required: clients without a certificate get 403"},
    {KEY("site NAME", "redirect", "STATUS URL|https[:PORT]"),
     .help = "send requests to another URL, or to TLS"},
    {KEY("site NAME", "header", "set|add|remove NAME[: VALUE]"), .may_repeat = true,
     .help = "change a field of responses"},
    {KEY("site NAME", "handler", "NAME"),
     .help = "handler of the program that answers requests, in place of files"},
    {KEY("site NAME", "methods", "METHOD,..."),
     .help = "other methods get 405"},
    {KEY("site NAME", "allow", "LIST,..."), .may_repeat = true,
     .help = "clients on none of these lists get 403"},
    {KEY("site NAME", "deny", "LIST,..."), .may_repeat = true,
     .help = "clients on one of these lists get 403"},
    {KEY("site NAME", "cache_control", "VALUE"),
     .help = "Cache-Control of files, in place of [files] cache_control"},
    {KEY("site NAME", "cors", "ORIGIN"),
     .help = "origin that may read responses; *: each"},
    {KEY("site NAME", "hsts", "TIME[, subdomains][, preload]"),
     .help = "Strict-Transport-Security over TLS"},
    {KEY("site NAME", "try", "$path, /FILE"),
     .help = "file that is sent where there is none"},
    {KEY("site NAME", "missing", "redirect URL"),
     .help = "where requests go for which there is no file"},
    {KEY("site NAME", "root", "FOLDER"),
     .help = "folder of the files, absolute or below [files] root"},
    {KEY("site NAME", "index", "NAME ..."),
     .help = "index files of a folder: the first one that exists"},
    {KEY("site NAME", "error_page", "STATUS /FILE"), .may_repeat = true,
     .help = "page for an error"},
    {KEY("site NAME", "mime", ".EXTENSION TYPE"), .may_repeat = true,
     .help = "media type of files whose name ends so"},
    {KEY("site NAME", "default_type", "TYPE"),
     .help = "media type of files with unknown extensions"},
    {KEY("site NAME", "listing", "on|off"), .help = "list folders without an index file"},
    {KEY("site NAME", "log", "on|off"), .help = "requests are in the access log, if there is one"},
    {KEY("site NAME", "content_disposition", "attachment|inline"),
     .help = "attachment: browsers store responses in files"},
    {KEY("site NAME", "acme", "FOLDER"),
     .help = "folder of the challenges of dehydrated, or certbot's webroot; in [site NAME] only"},
    {KEY("path NAME PATH", "alias", "FOLDER"),
     .help = "folder of the files below the path: as root, without the path in their names"},
    {KEY("path NAME PATH", "rewrite", "/PATH"),
     .help = "stands for the path of the section in names of files"},

    {.name = "config", .group = "program", TEXT(policy_file), .value = "FILE",
     .help = "configuration file, see nightjar.conf(5); read again on SIGHUP. Options "
             "override the file: a list of values replaces that of the file, except of "
             "--trusted-proxy"},
    {.name = "check", .kind = NJ_OPTION_MODE,
     .help = "check options, the file of --config, content types, files of TLS, the folder of "
             "--root, the user of --user and the access log, print the result with errors and "
             "warnings, and exit"},
    {.name = "explain", TEXT(explain), .value = "URL",
     .help = "with --check: print which listener, site, paths, class and keys, with their lines, "
             "answer a request for the URL, and how, e.g. https://www.example.org/downloads/x.iso"},
    {.name = "explain-from", TEXT(explain_from), .value = "ADDRESS",
     .help = "with --explain: the address of the client, for lists",
     .default_text = "one that is on no list"},
    {.name = "json", SWITCH(check_json), .help = "with --check: print JSON"},
    {.name = "print-placement", .kind = NJ_OPTION_MODE,
     .help = "draw which CPU polls which queue and where the workers run, for the lcores of -l or "
             "else the best ones of this host, and exit"},
    {.name = "help", .kind = NJ_OPTION_MODE, .help = "print the options and exit"},
    {.name = "version", .kind = NJ_OPTION_MODE, .help = "print the version and exit"},
};
/* clang-format on */

_Static_assert(NJ_ARRAY_LEN(nj_options) <= NJ_OPTIONS_MAX, "raise NJ_OPTIONS_MAX");

const uint32_t nj_n_options = NJ_ARRAY_LEN(nj_options);

bool nj_option_has_field(const struct nj_option *o)
{
    return o->kind > NJ_OPTION_KEY;
}

bool nj_option_is_named(const struct nj_option *o)
{
    return o->kind != NJ_OPTION_KEY;
}

bool nj_option_may_repeat(const struct nj_option *o)
{
    return o->may_repeat || o->kind == NJ_OPTION_LIST;
}

const char *nj_option_key(const struct nj_option *o, char key[NJ_OPTION_KEY_BYTES])
{
    snprintf(key, NJ_OPTION_KEY_BYTES, "%s", o->key ? o->key : o->name);
    for (char *p = key; (p = strchr(p, '-'));)
        *p = '_';
    return key;
}

bool nj_option_takes_value(const struct nj_option *o)
{
    return o->kind != NJ_OPTION_MODE && o->kind != NJ_OPTION_SWITCH;
}

static void format_word(const struct nj_option *o, double value, char *text, size_t n)
{
    const char *word = o->expected;

    for (double i = o->min; i < value && *word; i++)
        word += strcspn(word, "|") + 1;
    snprintf(text, n, "%.*s", (int)strcspn(word, "|"), word);
}

void nj_option_format_value(const struct nj_option *o, double value, char *text, size_t n)
{
    if (o->kind == NJ_OPTION_SIZE)
        nj_format_bytes((uint64_t)value, text, n);
    else if (o->kind == NJ_OPTION_RATE)
        nj_format_rate((uint64_t)value, text, n);
    else if (o->kind == NJ_OPTION_TIME)
        nj_format_seconds(value, text, n);
    else if (o->kind == NJ_OPTION_WORD)
        format_word(o, value, text, n);
    else
        nj_format_double(value, text, n);
}

const char *nj_option_reload_text(const struct nj_option *o)
{
    static const char *const text[] = {[NJ_RELOAD_NEVER] = "restart",
                                       [NJ_RELOAD_TAKES] = "reload",
                                       [NJ_RELOAD_VALUE] = "reload; restart from or to none"};
    return text[o->reload];
}

void nj_option_format_range(const struct nj_option *o, char *text, size_t n_text)
{
    char min[24], max[24];
    bool is_unlimited = o->max == NJ_BYTES_MAX;

    text[0] = '\0';
    if (o->kind == NJ_OPTION_LIST)
        snprintf(text, n_text, "up to %u times", (unsigned)o->max);
    if (o->kind <= NJ_OPTION_SWITCH || o->kind == NJ_OPTION_WORD || (o->min == 0 && is_unlimited))
        return;
    nj_option_format_value(o, o->min, min, sizeof min);
    nj_option_format_value(o, o->max, max, sizeof max);
    snprintf(text, n_text, is_unlimited ? "at least %s" : "%s to %s", min, max);
}
