/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run a nightjar server: one shard per EAL lcore, a folder served over HTTP/2.
 *
 *     struct nj_server_config c;
 *     nj_server_config_init(&c);
 *     c.addr[0] = "198.18.0.2/24";
 *     c.root = "/srv/www";
 *     return nj_server_run(eal_argc, eal_argv, &c);
 */
#ifndef NIGHTJAR_SERVER_H
#define NIGHTJAR_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nightjar/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NJ_API
#define NJ_API __attribute__((visibility("default")))
#endif

#define NJ_SERVER_ADDRS_MAX    8
#define NJ_SERVER_GATEWAYS_MAX 2

/* Strings are the caller's and must live as long as the server runs. */
struct nj_server_config {
    size_t size_bytes; /* of this struct; set by nj_server_config_init() */
    /* Our addresses on the link, as many as are not NULL; at least one. "ADDRESS/PREFIX" of IPv4 or
     * IPv6, or "auto6": IPv6 addresses as routers tell. With any IPv6 goes a link-local address. */
    const char *addr[NJ_SERVER_ADDRS_MAX];
    /* A router on that link for IPv4, and one for IPv6, in any order. Without: only the link is
     * reached, or with IPv6 what routers advertise. */
    const char *gateway[NJ_SERVER_GATEWAYS_MAX];
    uint16_t vlan;                 /* 802.1Q VLAN id, 1..4094; 0: untagged frames */
    uint16_t listen_port;          /* TCP port; 80 */
    const char *root;              /* folder to serve; required where there are no routes */
    const struct nj_route *routes; /* handlers, which are asked before the folder; see handler.h */
    uint32_t n_routes;
    uint32_t fibers_max; /* handlers of one lcore that can wait at once; 256 */
    enum nj_run strategy;
    int ethdev;               /* DPDK port number; -1: the only one there is */
    uint64_t cache_bytes;     /* of file contents kept in memory; 256 MiB */
    uint32_t conns_max;       /* TCP connections of one lcore; 65536 */
    double preface_timeout_s; /* a new connection may be silent for so long; 10 */
    double idle_timeout_s;    /* one without a running request; 75 */
    double drain_timeout_s;   /* after SIGTERM, running responses get this long; 10 */
    uint32_t workers; /* threads for OS_BLOCKING handlers, at most 32; 0: up to 4, as many as
                         CPUs are left by the lcores, at least 1 */
    bool no_offload;  /* checksums by software, whatever the device offers; off */
    bool newreno;     /* congestion control by NewReno instead of CUBIC; off */
    bool no_ecn;      /* no ECN (RFC 3168) for peers that ask for it; off */
    bool busy_poll;   /* lcores never sleep, also without work; off */
    bool live;        /* a line of rates on stderr every second; off */
};

/**
 * Fill in the defaults.
 *
 * Context: any thread.
 */
NJ_API void nj_server_config_init(struct nj_server_config *config);

/**
 * Start the EAL with the user's arguments, serve until SIGTERM, SIGINT or SIGHUP, and clean up.
 *
 * The first signal begins the graceful end: no new connections, GOAWAY, running responses are
 * finished, at most drain_timeout_s long. A second one ends at once.
 *
 * Context: main thread, once per process. SIGTERM, SIGINT and SIGHUP are the server's; they stay
 *          blocked afterwards, so that a late one can't cut the cleaning at exit short, and SIGPIPE
 *          stays ignored. Returns when everything it started is gone.
 * Errors:  one line on stderr, "nightjar: what is wrong: what to do".
 * Returns: 0 after a signal; 1 when it could not start.
 */
NJ_API int nj_server_run(int eal_argc, char **eal_argv, const struct nj_server_config *config);

/**
 * Draw on stdout which CPU polls which queue and where the workers run, with the EAL arguments for
 * it: for the lcores that the EAL's arguments name, or if they name none for the best ones of this
 * machine. What is wrong with named ones, and better ones, go to stderr. Starts nothing.
 *
 * Context: any thread.
 * Errors:  one line on stderr.
 * Returns: 0, or 1.
 */
NJ_API int nj_print_placement(int eal_argc, char **eal_argv, const struct nj_server_config *config);

/** "major.minor.patch" of the library. */
NJ_API const char *nj_version(void);

#ifdef __cplusplus
}
#endif

#endif
