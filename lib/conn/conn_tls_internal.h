/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by conn_tls.c (records) and conn_tls_handshake.c. */
#pragma once

#include "conn/conn.h"
#include "conn/conn_tls.h"
#include "site/site_table.h"
#include "telem/count.h"

/* Output of one call of nj_h2_output() that waits to be sealed. */
#define PENDING_PIECES_MAX 64u
#define PENDING_COPY_MAX   16384u
/* Values of the hash by which clients are distinguished. */
#define CLIENTS            1024u

/* Sealed bytes of one call: a full record, or short ones with more overhead, and a KeyUpdate. */
#define SEALED_MAX 17408u

struct nj__handshake;

struct nj_conn_tls {
    struct nj_tls_session session;   /* once it is established */
    struct nj__handshake *handshake; /* until then */
    struct nj_client_cert *cert;     /* NULL: none */
    struct nj_site_identity identity;
    bool established, ended; /* ended: an alert was sent or received */
    bool http1;              /* HTTP/1.1 was agreed on, not HTTP/2 */
    bool broken;             /* output was lost */
    bool record_waits;       /* the first unread record is incomplete */
    uint32_t record_seq;     /* its sequence number of TCP */
    nj_ns record_since;      /* when it began to wait */
};

struct nj_conns_tls {
    struct nj_tls_crypto crypto;
    struct nj_pool conns, handshakes, buffers;
    struct nj_conn_tls **conn;     /* by the index of struct nj_conn */
    uint8_t *expanded;             /* EXPANDED_MAX expanded keys: touched when they are used */
    uint32_t n_of_client[CLIENTS]; /* handshakes */
    struct nj_list waiting;        /* handshakes that wait for their clients */
    bool unflushed;                /* a handshake was submitted since the workers were woken */
    uint64_t step_cycles;          /* in handshakes, in this step or the last one with any */
    uint32_t n_pending, n_pending_bytes, n_copied;
    bool lost; /* pending bytes could not be sealed */
    struct nj_slice pending[PENDING_PIECES_MAX];
    uint8_t copied[PENDING_COPY_MAX];
    uint8_t sealed[SEALED_MAX];
    uint8_t scratch[NJ_TLS_OPEN_ROOM];
};

/* As nj_pool_index(), but without a division: it is asked several times per record. A struct
 * nj_conn has one cache line. */
static inline uint32_t nj__conn_tls_index(const struct nj_conn *c)
{
    NJ_ASSERT(c->conns->pool.obj_bytes == NJ_CACHE_LINE);
    return (uint32_t)((size_t)((const uint8_t *)c - c->conns->pool.mem) / NJ_CACHE_LINE);
}

static inline struct nj_conn_tls **nj__conn_tls_place(const struct nj_conn *c)
{
    return &c->conns->tls->conn[nj__conn_tls_index(c)];
}

/* --- conn_tls_handshake.c ------------------------------------------------------------------- */

/* The connection ends, and no further alert is sent. Counts `why`, with the client. */
void nj__conn_tls_give_up(struct nj_conn *c, nj_counter why);

bool nj__handshakes_init(struct nj_conns_tls *t, uint32_t conns_max);
/* Begins one. ct->handshake stays NULL if too many are in progress. */
void nj__handshake_begin(struct nj_conn *c, struct nj_conn_tls *ct);
/* The connection needs it no more. It is freed when the workers return it. */
void nj__handshake_leave(struct nj_conns *cs, struct nj_conn_tls *ct);
/* Does the connection wait for a worker? */
bool nj__handshake_runs(const struct nj_conn_tls *ct);
/* Has a worker processed input, which nj__handshake_advance() completes? */
bool nj__handshake_is_finished(const struct nj_conn_tls *ct);
/* Sends what a worker has made, and submits the records that have arrived. At the end of the
 * handshake ct->established or ct->ended is set, and ct->handshake is NULL. */
void nj__handshake_advance(struct nj_conn *c, struct nj_conn_tls *ct);
