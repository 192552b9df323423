/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The streams that the server sends, as they are on the wire: each byte of a connection has the
 * same value whenever it is sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SIM_STREAMS_MAX 64u

/* A connection. After another SYN-ACK it is the next one of the same ports. */
struct sim_stream {
    uint32_t addr;         /* of the client; 0: not in use */
    uint16_t sport, dport; /* of the server, of the client */
    uint32_t iss;
    uint32_t n_room;
    uint16_t *byte; /* by position; 0: was never sent, else the value | 0x100 */
};

struct sim_resent {
    struct sim_stream stream[SIM_STREAMS_MAX];
    uint64_t n_again; /* bytes that were sent before */
};

/* The server sends this frame. False: with another byte than before; its position is in *at. */
bool nj_sim_resent_check(struct sim_resent *r, const uint8_t *frame, uint32_t n_bytes,
                         uint32_t *at);
void nj_sim_resent_fini(struct sim_resent *r);
