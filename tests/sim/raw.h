/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames as bytes: the simulators' own parser of TCP segments, independent of lib/wire. Used by all
 * code that reads, rewrites and forges segments on the simulated link.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define SIM_ETH_BYTES 14u
#define SIM_TCP_BYTES 20u

/* Offsets and values in a frame with a whole TCP segment. */
struct sim_raw {
    bool v6;
    uint32_t ip, tcp, opts, data, end; /* offsets; options are from `opts` to `data` */
    uint32_t n_data;
    uint16_t sport, dport, wnd;
    uint32_t seq, ack;
    uint8_t flags, ecn;
};

/* Options of a segment, as offsets in the frame; 0 in `at`: absent. */
struct sim_raw_opts {
    uint32_t mss_at, wscale_at, sack_ok_at, ts_at, sack_at; /* of the kind byte */
    uint16_t mss;
    uint8_t wscale, n_sack;
    uint32_t ts_val, ts_ecr;
};

/* False if it is not a whole TCP segment. Does not verify checksums. */
bool nj_sim_raw_parse(const uint8_t *frame, uint32_t n_bytes, struct sim_raw *r);
void nj_sim_raw_opts(const uint8_t *frame, const struct sim_raw *r, struct sim_raw_opts *o);

/* Update lengths and checksums of a changed segment, for a frame of `n_bytes`. */
void nj_sim_raw_seal(uint8_t *frame, uint32_t n_bytes);

/* The answer of a router whose next link takes packets of `mtu` bytes to a segment that is longer
 * (RFC 792, RFC 4443 3.2). Returns the bytes of the frame at `icmp`. */
#define SIM_TOO_BIG_MAX (SIM_ETH_BYTES + 40u + 8u + 60u)
uint32_t nj_sim_raw_too_big(const uint8_t *frame, uint16_t mtu, uint8_t icmp[SIM_TOO_BIG_MAX]);

/* The Internet checksum of `n_bytes` for a header (RFC 1071). */
uint16_t nj_sim_sum16(const uint8_t *p, uint32_t n_bytes);

uint32_t nj_sim_get32(const uint8_t *p);
void nj_sim_put32(uint8_t *p, uint32_t v);
uint16_t nj_sim_get16(const uint8_t *p);
void nj_sim_put16(uint8_t *p, uint16_t v);

/* Copy a chain of mbufs into SIM_FRAME_MAX bytes. */
void nj_sim_flatten(const struct rte_mbuf *m, uint8_t *out);
