/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of nightjar-load. */
#pragma once

#include <nightjar/server.h>

#include "base/types.h"
#include "framing.h"

#define LOAD_CONNS_MAX  (1u << 20)
#define LOAD_PATH_BYTES 4096u
#define LOAD_TO_MAX     8u /* addresses of a name */

/* Connections of an lcore that send a request at the same time: each request occupies a buffer of
 * its own until it is acknowledged, and another one for sending. Together they use all 16,383
 * buffers. */
#define LOAD_ASKING_MAX 8000u

struct load_options {
    struct nj_server_config link; /* addresses, gateway, VLAN: options that the server has, too */
    const char *preset;           /* NULL: none */
    bool over_dpdk;               /* a port of DPDK; false: sockets of the kernel */
    uint32_t n_threads;
    uint32_t n_to; /* addresses of the server: tried in turn until a connection is made */
    struct nj_addr to[LOAD_TO_MAX];
    uint16_t port;
    char authority[280];
    char name[256];          /* of the server */
    const char *server_name; /* `name`, for SNI; NULL: the URL has an address */
    uint32_t n_conns;
    /* Closed loop: requests at a time, over all connections; 0: `streams` each. */
    uint32_t in_flight;
    uint64_t n_requests; /* 0: for `duration` */
    nj_ns duration, warm_up, timeout;
    double rate; /* of requests per second, all together; 0: closed loop */
    uint32_t weight[LOAD_PATHS_MAX], weights; /* of the plan's paths, and their sum */
    uint32_t n_fields;
    const char *field[LOAD_FIELDS_MAX + 1]; /* with our user-agent */
    uint64_t seed;
    bool in_turn; /* paths, not by chance */
    bool quiet;
    const char *json, *csv;
    struct load_plan plan;
};

enum load_told { LOAD_GO, LOAD_HELPED, LOAD_WRONG, LOAD_NO_HOST };

/* Parses argv behind the "--". Errors go to stderr, help to stdout. `has_eal`: EAL arguments are in
 * front of it. LOAD_NO_HOST: the name of the server was not found. */
enum load_told load_options_read(struct load_options *o, int argc, char **argv, bool has_eal);
