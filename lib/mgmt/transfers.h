/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running transfers of all shards: listed, and ended. Commands go to each lcore through the ring of
 * its connections (conn/transfers.h), and a sleeping lcore is woken.
 *
 * What is ended is logged, also if an lcore ends it after its asker has gone. The functions may be
 * called from any thread but an lcore; a lock admits one at a time, and they return at the deadline
 * at the latest. An lcore that has not answered by then is counted as missing. The memory that it
 * writes to belongs to struct nj_mgmt_transfers, which keeps it until the late answer has come:
 * until then that lcore is missing from further answers of the kind, but a list that is late is
 * the answer to the next question if that has the same filter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/command_ring.h"
#include "conn/transfers.h"

struct nj_wakeup;
struct nj_mgmt_transfers;

/* An lcore to which commands go. */
struct nj_mgmt_lcore {
    struct nj_command_ring *commands;
    struct nj_wakeup *waker; /* NULL: it never sleeps */
};

/* The rings live until nj_mgmt_transfers_free(), which is called when all lcores have ended. NULL
 * when memory is refused. Main thread. */
struct nj_mgmt_transfers *nj_mgmt_transfers_new(const struct nj_mgmt_lcore *lcores, uint32_t n);
void nj_mgmt_transfers_free(struct nj_mgmt_transfers *m);

/* How long a caller waits if it has no reason for another time: an lcore answers within some steps,
 * unless a handler holds it. */
#define NJ_MGMT_WAIT_DEFAULT (200 * NJ_MS)

struct nj_mgmt_transfer {
    struct nj_transfer of;
    uint64_t bytes_per_s; /* now: over the last half second to two seconds, if known */
    bool is_average;      /* not known yet: since its request arrived */
};

struct nj_mgmt_transfers_filter {
    struct nj_net of;                 /* of the client or the connection; 0 bits: any */
    char class_of[NJ_CLASS_NAME_MAX]; /* empty: any */
    uint32_t n_shown;                 /* the fastest, 1 to 1 << 20 */
};

struct nj_mgmt_transfers_answer {
    uint32_t n, n_found; /* in `at`; of those that match, which may be more */
    uint32_t n_missing;  /* lcores that have not answered */
    uint32_t n_room;     /* for release */
    struct nj_mgmt_transfer *at;
};

/* Lists the fastest transfers, those first, and fills in *out, whose memory
 * nj_mgmt_transfers_release() frees. Of an lcore that has more than 16,384, so many are compared.
 * Returns false when memory is refused; then *out is empty. `wait`: the longest time. */
bool nj_mgmt_transfers_list(struct nj_mgmt_transfers *m,
                            const struct nj_mgmt_transfers_filter *filter, nj_ns wait,
                            struct nj_mgmt_transfers_answer *out);
void nj_mgmt_transfers_release(struct nj_mgmt_transfers_answer *answer);

enum nj_mgmt_end {
    NJ_MGMT_ENDED,
    NJ_MGMT_NOT_RUNNING, /* it has ended already, or never was */
    NJ_MGMT_NO_ANSWER,   /* the lcore has not answered; it may end the transfer later */
};
enum nj_mgmt_end nj_mgmt_transfer_end(struct nj_mgmt_transfers *m, const struct nj_transfer_id *id,
                                      nj_ns wait);

struct nj_mgmt_network_end {
    uint32_t n_ended;   /* transfers */
    uint32_t n_missing; /* lcores that have not answered; they may end transfers later */
};
/* Ends all transfers of a network that run now. For those to come see mgmt/blocks.h. */
struct nj_mgmt_network_end nj_mgmt_network_end(struct nj_mgmt_transfers *m, const struct nj_net *of,
                                               nj_ns wait);

/* Gives an lcore another command, and returns at once: the caller keeps its memory until it is
 * done, or the lcore has ended. False: its ring is full, or another function runs: try again. */
bool nj_mgmt_lcore_command(struct nj_mgmt_transfers *m, uint32_t lcore, struct nj_command *command);
/* Logs what lcores have ended late, and frees late lists for which nobody asks. Does nothing while
 * another function runs. The supervisor, once per tick. */
void nj_mgmt_transfers_tick(struct nj_mgmt_transfers *m);
