/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lcores record for one client of the management listener while it reads: packets
 * (capture.h), or requests (trace.h). Each lcore gets a command that begins it and writes records
 * into a ring of its own; the management thread makes the body of the response from them, the
 * oldest first, until the time or the number of records is over, the client goes, or the server
 * yields or stops. Then each lcore gets a command that ends it, and the memory is released when all
 * have run that one.
 *
 * All on the management thread, except new and free.
 */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "base/record_ring.h"
#include "mgmt/stream.h"
#include "mgmt/view.h"

/* Rings of all lcores together, of one kind. */
#define NJ__TAPS_BYTES_MAX    ((uint64_t)64 << 20)
#define NJ__TAP_BYTES_MAX     ((uint64_t)8 << 20)
#define NJ__TAP_BYTES_MIN     ((uint64_t)1 << 20)
#define NJ__TAPS_SECONDS_MAX  600u
#define NJ__TAPS_SECONDS      60u /* by default */
/* The most that format() and tail() write. */
#define NJ__TAP_OUT_BYTES_MAX (320u << 10)

/* What is written to the client. */
struct nj__tap_out {
    char *text;
    size_t n,
        n_room; /* n_room - n >= NJ__TAP_OUT_BYTES_MAX when a function of the kind is called */
};
void nj__tap_write(struct nj__tap_out *out, const void *bytes, size_t n);

struct nj__taps;

/* What is recorded. `of` is that of nj__taps_new(). */
struct nj__tap_kind {
    const char *name;   /* "capture" */
    const char *record; /* "packet" */
    /* Commands for an lcore, whose records go to `ring`. NULL: no memory. */
    struct nj_command *(*begin)(void *of, uint32_t lcore, struct nj_record_ring *ring);
    struct nj_command *(*end)(void *of, uint32_t lcore);
    /* The beginning of the body; a record, which begins with an uint64_t that orders them; the end.
     */
    void (*head)(void *of, struct nj__tap_out *out);
    void (*format)(void *of, uint32_t lcore, const void *record, struct nj__tap_out *out);
    void (*tail)(void *of, const struct nj__taps *taps, struct nj__tap_out *out);
    /* No lcore uses what begin() has made. */
    void (*release)(void *of);
};

struct nj__taps *nj__taps_new(const struct nj_mgmt_view *view, const struct nj__tap_kind *kind,
                              void *of);
/* When the lcores have ended. NULL is valid. Main thread. */
void nj__taps_free(struct nj__taps *t);

struct nj__taps_limits {
    uint32_t seconds;
    uint64_t n_max;            /* records in the body */
    bool is_in[NJ_SHARDS_MAX]; /* which lcores */
};

/* Is there one for another client, or not yet given back by an lcore? Then a reason. */
const char *nj__taps_why_busy(struct nj__taps *t);
/* Releases the memory of one that has ended when no lcore uses it. True: not yet; call it again. */
bool nj__taps_tick(struct nj__taps *t);
/* Begin, and fill in *stream. False: no memory. Not while it is busy. */
bool nj__taps_begin(struct nj__taps *t, const struct nj__taps_limits *limits,
                    struct nj__mgmt_stream *stream);
/* The client asks for the end of the body. False: there is none. */
bool nj__taps_end(struct nj__taps *t);

uint64_t nj__taps_n_records(const struct nj__taps *t, uint32_t lcore); /* written to the client */
uint64_t nj__taps_n_lost(const struct nj__taps *t, uint32_t lcore);
