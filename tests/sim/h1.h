/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of HTTP/1.1 and HTTP/1.0 (RFC 9112), written on its own: it shares no code with lib/h1.
 * h1_plan.c draws its requests, h1_client.c sends them and checks the responses, h1_response.c
 * parses heads of responses.
 */
#pragma once

#include "conn.h"

/* Last-modified of all files in their first version. */
#define SIM_MODIFIED "Sun, 13 Sep 2020 12:27:00 GMT"

struct sim_h1_head {
    uint16_t status;
    bool closes, keeps; /* Connection: close; keep-alive */
    bool has_length, has_date, is_chunked;
    uint64_t length;
    uint32_t version; /* of the file, by last-modified */
    char range[64];   /* Content-Range */
};

/* Completes the plan of a connection. */
void nj_sim_h1_plan(struct sim_conn *c);
/* Parses a head with its empty line. NULL, or what is wrong with it. */
const char *nj_sim_h1_parse(const char *head, size_t n, struct sim_h1_head *out);
/* Is the death of the connection an end that the client has to expect? */
bool nj_sim_h1_may_die(const struct sim_conn *c);
