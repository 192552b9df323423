/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Response bodies of the file server: bytes in memory; a range of a large object, read chunk by
 * chunk by workers; or several ranges as multipart/byteranges. For file_server.c and its parts
 * only. One lcore only. Each body holds a reference to its object until it is closed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/body_source.h"
#include "base/str.h"
#include "base/list.h"
#include "base/pool.h"
#include "http/files/file_server.h"
#include "http/proto/range.h"
#include "telem/count.h"

/* Bodies over bytes in memory need no worker, so the number of streams bounds them, not
 * exchanges_max. This is a safety limit: 64 MiB of address space. */
#define NJ_BYTES_BODIES_MAX (1u << 20)

/* A file job with the file server's own data. A job may outlive the requests that wait for it; a
 * cancelled request is removed from `waiters`. */
struct nj__file_job {
    struct nj_file_job file; /* first. READ: its waiting body, or NULL */
    struct nj_list pending;  /* OPEN: in a bucket of the pending OPENs */
    struct nj_list waiters;  /* OPEN: struct nj_file_wait.link */
    uint64_t hash;           /* OPEN: hash of the path */
    uint32_t n_path;         /* OPEN: length of the path */
};

/* State shared by all bodies of a file server. */
struct nj__file_bodies {
    const struct nj_file_ops *file_ops;
    struct nj_counters *counters;
    void (*wake)(void *waiter); /* see nj_txn_events */
    uint32_t jobs_out;
    bool retrying;
    struct nj_list starved; /* chunked bodies whose READ was refused, oldest first */
    struct nj_pool jobs, bytes_bodies, chunk_bodies, parts_bodies;
};

/* Allows `exchanges_max` chunked bodies and twice as many jobs: a closed body may leave one behind.
 * False: no memory. */
bool nj__file_bodies_init(struct nj__file_bodies *f, const struct nj_file_server_config *config);
void nj__file_bodies_fini(struct nj__file_bodies *f);
/* To be called after nj__file_bodies_init(): allows `n_max` bodies of several ranges. */
bool nj__multipart_init(struct nj__file_bodies *f, uint32_t n_max);

/* Takes an empty job. NULL: all are in use. */
struct nj__file_job *nj__file_job_take(struct nj__file_bodies *f);
/* Submits a job. False: refused, and the caller still owns the job. The job may complete before
 * this returns, so the caller must not touch a submitted job. */
bool nj__file_job_submit(struct nj__file_bodies *f, struct nj__file_job *job);
void nj__file_job_put(struct nj__file_bodies *f, struct nj__file_job *job);
/* Cancels a submitted job. True: the caller owns it; false: it will complete. */
bool nj__file_job_withdraw(struct nj__file_bodies *f, struct nj__file_job *job);

/* Makes a body over a range of an object. Takes a reference to the object. `client`: see struct
 * nj_file_job. NULL: no body or memory is left. */
struct nj_body *nj__range_body_new(struct nj__file_bodies *f, struct nj_file_object *object,
                                   struct nj_range range, const void *client);
/* Continues an exhausted body with another range of the same object. nj__body_set_outer() sets the
 * body that is woken in its place, because it wraps this one. */
void nj__body_set_range(struct nj_body *body, struct nj_file_object *object, struct nj_range range);
void nj__body_set_outer(struct nj_body *body, struct nj_body *outer);

/* Longest boundary between ranges. */
#define NJ_BOUNDARY_MAX 32u

/* Makes a body over several ranges, as multipart/byteranges (RFC 9110 14.6) of *n_bytes bytes: each
 * range follows its part header. NULL: no body or memory is left. */
struct nj_body *nj__multipart_body_new(struct nj__file_bodies *f, struct nj_file_object *object,
                                       const struct nj_ranges *ranges, struct nj_str type,
                                       struct nj_str boundary, const void *client,
                                       uint64_t *n_bytes);

/* Handles a completed READ and frees its job. */
void nj__body_read_done(struct nj__file_bodies *f, struct nj__file_job *job);
/* Submits the READs of refused bodies once more. Called after each completion, and when the queue
 * has room without one. */
void nj__file_bodies_retry_reads(struct nj__file_bodies *f);
