/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection that acted against a client: how often, for which reason, against whom. A reason is a
 * counter of telem/counters.def.
 *
 * The shard's lcore writes, anybody reads, without locks. Where nothing happens, nothing is done.
 */
#ifndef NJ_CONN_ABUSE_COUNTS_H
#define NJ_CONN_ABUSE_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "telem/counters.h"

struct nj_shard;

/* Of one reason. */
struct nj_abuse_slot {
    _Atomic uint64_t n;
    _Atomic uint64_t
        addr[2]; /* the client that most acts were against in that second, if any was */
    _Atomic uint32_t version; /* of addr: odd while it is written */
    _Atomic uint32_t second;  /* of the shard's time, modulo 2^32 */
    _Atomic uint32_t weight;  /* acts against that client, less those against others */
    _Atomic bool others;      /* there were some */
};

struct nj_abuse {
    _Atomic uint64_t n; /* of all reasons */
    struct nj_abuse_slot slot[NJ_N_COUNTERS];
};

struct nj_abuse_view {
    uint64_t n;
    struct nj_addr client;
    uint32_t second; /* of the last act, of the shard's time, modulo 2^32 */
    uint32_t weight; /* in that second: acts against that client, less those against others */
    bool others;     /* in that second there were some */
};

/* Counts `reason` (a counter of kind EVENT) and records `client` as its cause. The shard's lcore
 * only. */
void nj__abuse(struct nj_shard *s, enum nj_counter reason, const struct nj_addr *client);
/* The same where the counter is counted by somebody else. */
void nj__abuse_of(struct nj_shard *s, enum nj_counter reason, const struct nj_addr *client);

/* Any thread. False: that reason there was none of, or its slot is being written to. */
bool nj_abuse_view(const struct nj_abuse *a, enum nj_counter reason, struct nj_abuse_view *out);
uint64_t nj_abuse_count(const struct nj_abuse *a, enum nj_counter reason);

#endif
