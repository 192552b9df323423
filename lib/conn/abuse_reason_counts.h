/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Acts against clients: how many, for which reason, against which client. An act is protection
 * against abuse, or a refusal: of a connection or request that no transaction, and so no record of
 * the access log, tells of.
 *
 * A reason is a counter of telem/counters.def. The shard's lcore writes without locks; any thread
 * may read.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "telem/count.h"

struct nj_conns;

/* Acts for one reason. */
struct nj_abuse_slot {
    _Atomic uint64_t n;
    _Atomic uint64_t addr[2]; /* client with most acts in `second`; 0: none yet */
    _Atomic uint32_t version; /* of addr: odd while addr is written */
    _Atomic uint32_t second;  /* of the last act, in shard time, modulo 2^32 */
    _Atomic uint32_t weight;  /* acts against that client minus acts against others */
    _Atomic bool others;      /* other clients caused acts in `second` */
};

struct nj_abuse {
    _Atomic uint64_t n; /* for all reasons */
    struct nj_abuse_slot slot[NJ_COUNTERS_MAX];
};

struct nj_abuse_view {
    uint64_t n;
    struct nj_addr client;
    uint32_t second; /* of the last act, in shard time, modulo 2^32 */
    uint32_t weight; /* acts against `client` in that second, minus acts against others */
    bool others;     /* other clients caused acts in that second */
};

/* A refusal, not protection against abuse? Any thread. */
bool nj_abuse_is_refusal(nj_counter reason);

/* Counts `reason` (a counter of kind EVENT) and records `client` as its cause. The shard's lcore
 * only. */
void nj__abuse_record(struct nj_conns *cs, nj_counter reason, const struct nj_addr *client);
/* Records `client` where the caller has counted `reason` already. The shard's lcore only. */
void nj__abuse_attribute(struct nj_conns *cs, nj_counter reason, const struct nj_addr *client);

/* Any thread. Returns false when there was no such act, or its slot is being written. */
bool nj_abuse_get_count_and_client(const struct nj_abuse *a, nj_counter reason,
                                   struct nj_abuse_view *out);
uint64_t nj_abuse_get_count(const struct nj_abuse *a, nj_counter reason);
