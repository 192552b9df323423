/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running transfers of a shard, for management: a snapshot of them, with the reason why each is not
 * faster, and the end of one or of those of a network.
 *
 * Each is a command (base/command_ring.h) that the lcore runs in parts of NJ_TRANSFERS_SLICE
 * requests, one part per step. The datapath keeps nothing for it but the paths of longer responses
 * (http/transaction.h): all else is read from the state of the shaper, TCP, HTTP and the file
 * server when the part is run. A request that begins or ends between two parts may be missing; none
 * is listed twice, since a request keeps its place.
 */
#pragma once

#include "base/body_source.h"
#include "base/command_ring.h"
#include "base/types.h"
#include "shape/request_policy.h"

struct nj_conns;

/* Places of requests that are looked at in a step: 10 us if all are in use. */
#define NJ_TRANSFERS_SLICE 64u

/* Why a transfer is not faster at this moment. */
enum nj_why {
#define NJ_WHY(NAME, text, what) NJ_WHY_##NAME,
#include "conn/why.def"
#undef NJ_WHY
    NJ_N_WHYS
};

/* Its name in answers, such as "congestion window", and what it means, as a sentence. */
const char *nj_why_name(enum nj_why why);
const char *nj_why_meaning(enum nj_why why);

/* A transfer of this process: not reused within 2^32 connections of the shard. */
struct nj_transfer_id {
    uint32_t shard;
    uint32_t place; /* of the request in its shard */
    uint64_t txn;   /* nj_txn_id() */
};

/* "SHARD-PLACE-CONNECTION-STREAM", in decimal. */
#define NJ_TRANSFER_ID_TEXT_BYTES 48u
const char *nj_transfer_id_format(const struct nj_transfer_id *id,
                                  char out[NJ_TRANSFER_ID_TEXT_BYTES]);
/* The whole text must match. False: it is not an id. */
bool nj_transfer_id_parse(const char *text, size_t n_bytes, struct nj_transfer_id *out);

#define NJ_TRANSFER_PATH_BYTES 128u

struct nj_transfer {
    struct nj_transfer_id id;
    struct nj_addr client; /* whose request it is: one that a trusted proxy names, else `remote` */
    struct nj_addr remote; /* of the connection: the source of its PROXY header, else TCP's */
    uint16_t rport;        /* of `remote` */
    uint16_t status;       /* 0: the response has not begun */
    uint8_t method;        /* enum nj_method */
    uint8_t why;           /* enum nj_why */
    bool is_h2, is_tls;
    bool is_path_cut;
    /* Without the query. 0: not known, of a short response without an access log. */
    uint8_t n_path;
    char path[NJ_TRANSFER_PATH_BYTES];
    char class_of[NJ_CLASS_NAME_MAX]; /* empty: the policy does not count it, since it refused it */
    uint64_t n_done;                  /* bytes of the body that were passed to TCP */
    uint64_t n_left;                  /* NJ_BODY_LEN_UNKNOWN: not known */
    nj_ns age;                        /* since its request arrived */
    nj_ns throttled;                  /* of that: waits for credit that have ended */
};

/* ---- commands; their target is a struct nj_conns ---- */

/* Lists the transfers of a network, and of a class. The caller sets the fields of the first part,
 * and nj_transfers_begin() the rest. `out` has room for `n_max`. */
struct nj_transfers_command {
    struct nj_command command;
    struct nj_net of;                 /* the client, or the address of the connection */
    char class_of[NJ_CLASS_NAME_MAX]; /* empty: any */
    struct nj_transfer *out;
    uint32_t n_max;

    uint32_t n;       /* written to `out` */
    uint32_t n_found; /* as many match */
    nj_ns taken_at;   /* time of the last part */
    uint32_t at;      /* the next place to look at */
};
void nj_transfers_begin(struct nj_transfers_command *c);

/* Ends a transfer: RST_STREAM with CANCEL. A connection of HTTP/1 is reset, and so is one of HTTP/2
 * that has no other request and whose peer does not read. */
struct nj_transfer_end_command {
    struct nj_command command;
    struct nj_transfer_id id;

    bool was_running; /* false: it has ended already, or never was */
};
void nj_transfer_end_begin(struct nj_transfer_end_command *c);

/* Ends all transfers of a network, as of struct nj_transfers_command. */
struct nj_network_end_command {
    struct nj_command command;
    struct nj_net of;

    uint32_t n_ended, at;
};
void nj_network_end_begin(struct nj_network_end_command *c);
