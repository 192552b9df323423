/* SPDX-License-Identifier: BSD-3-Clause */
/* New connections that send a valid ClientHello each and never complete the handshake. */
#pragma once

#include "client.h"

struct flood_options {
    struct target to;
    uint32_t rate; /* connections per second */
    nj_ns duration;
    nj_ns hold; /* each connection is reset after this time; 0: when the server has answered */
    uint64_t seed;
};

/* Prints one line of JSON. Returns false after a message on stderr. */
bool flood_run(const struct flood_options *o);
