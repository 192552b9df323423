/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of attackers. All connections of an attack have the same kind. A connection that the
 * server ends is closed and opened again from a new address and port.
 */
#pragma once

#include "base/prng.h"
#include "h2_client.h"
#include "hosts.h"
#include "party.h"

#define ATTACK_STATUS_MAX 600u

struct attack_kind; /* what the connections send */

struct attacker {
    struct party party; /* first */
    struct nj_tcb *tcb;
    bool open, closing, answered;
    struct h2_client *h2; /* of the kind `h2` */
};

/* Counts since the beginning of the attack. */
struct attack_counts {
    uint64_t opened, refused, by_fin, by_rst; /* refused: ended before they were open */
    uint64_t pieces;                          /* sent */
    uint64_t held;      /* not sent, because the connection had too much under way */
    uint64_t forgotten; /* not sent, because the client was late */
    uint64_t responses; /* of the kind `h2` */
    uint64_t bytes;     /* received */
    uint64_t status[ATTACK_STATUS_MAX]; /* first responses of connections of HTTP/1 */
};

struct attackers {
    struct hosts *hosts;
    uint16_t port;
    const char *path; /* of a file of the server */
    struct attacker *slot;
    struct h2_client *h2;
    uint32_t *vacant;
    uint32_t n_max, n_vacant, n_slots; /* n_slots: of this attack */
    uint32_t n_opening, n_open;        /* n_open: and not ended by the server */
    uint64_t n_tuples;                 /* addresses and ports used so far */
    const struct attack_kind *kind;    /* NULL: no attack */
    uint8_t message[4096];
    uint32_t n_message, next;
    double opens_due, pieces_due, open_rate, piece_rate;
    nj_ns stepped_at;
    struct attack_counts n;
};

bool attackers_init(struct attackers *a, struct hosts *hosts, uint16_t port, const char *path,
                    uint32_t n_max);
void attackers_fini(struct attackers *a);

/* Begins an attack by `n` connections, of which `open_rate` are opened and to which `piece_rate`
 * pieces are sent per second. A piece of the kind `flood` has `depth` requests. False: there is no
 * such kind, or it is too large. */
bool attackers_begin(struct attackers *a, const char *kind, uint32_t n, double open_rate,
                     double piece_rate, uint32_t depth, nj_ns now);
/* Resets connections. True: none is left. */
bool attackers_end(struct attackers *a, nj_ns now);

/* Opens connections, and sends the pieces that are due: a few of each. Returns the number. */
uint32_t attackers_step(struct attackers *a, nj_ns now);
void attackers_event(struct attackers *a, struct attacker *t, uint8_t events, nj_ns now);
