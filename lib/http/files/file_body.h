/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Response bodies of a site: bytes that are in memory, a large object or a range of it read chunk
 * by chunk with the help of the file port, or several ranges. For file_server.c and its parts only.
 */
#ifndef NJ_HTTP_FILES_FILE_BODY_H
#define NJ_HTTP_FILES_FILE_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "base/list.h"
#include "base/pool.h"
#include "http/files/file_server.h"
#include "http/proto/range.h"

/* Bodies over bytes in memory. They wait for their stream, not for a worker, so streams bound them
 * and not exchanges_max; this is the backstop, 64 MiB of address space. */
#define NJ_BYTES_BODIES_MAX (1u << 20)

/* A job and what the site remembers of it. It outlives its asker: who lost interest is taken off.
 */
struct nj__job {
    struct nj_file_job file; /* first: what the port sees. READ: asker is the body, or NULL */
    struct nj_list pending;  /* OPEN: in the site's table of opens */
    struct nj_list waiters;  /* OPEN: exchanges */
    uint64_t hash;           /* OPEN: of the path */
    uint32_t n_path;         /* OPEN: bytes of the path */
};

/* What all bodies of one site share. */
struct nj__files {
    const struct nj_file_port *port;
    struct nj_counters *counters;
    void (*wake)(void *waiter); /* see nj_txn_events */
    uint32_t jobs_out;
    bool retrying;
    struct nj_list starved; /* chunked bodies that the port refused, oldest first */
    struct nj_pool jobs, bytes_bodies, chunk_bodies, parts_bodies;
};

/* Up to `exchanges_max` chunked bodies and twice as many jobs: each may have left one behind. */
bool nj__files_init(struct nj__files *f, const struct nj_site_config *config);
void nj__files_fini(struct nj__files *f);
/* The part of nj__files_init() that is multipart_body.c's. */
bool nj__parts_init(struct nj__files *f, uint32_t n_max);

/* A job to fill in, or NULL when all are in use. */
struct nj__job *nj__job_take(struct nj__files *f);
/* Give it to the port. On false the job stays with the caller. The port may complete it before
 * this returns, so a submitted job must not be touched afterwards. */
bool nj__job_submit(struct nj__files *f, struct nj__job *job);
void nj__job_put(struct nj__files *f, struct nj__job *job);
/* Nobody wants a job that is out. True: it is the caller's again; else it comes back. */
bool nj__job_withdraw(struct nj__files *f, struct nj__job *job);

/* A body over a range of an object, in memory or not; takes a reference. `client`: for whom its
 * jobs are, see struct nj_file_job. NULL: none left. */
struct nj_body *nj__body_of_range(struct nj__files *f, struct nj_object *object,
                                  struct nj_range range, const void *client);
/* The body has given all it had, and goes on with another range of the same object. When it has
 * nothing to show it wakes `face`, which stands in front of it. */
void nj__body_aim(struct nj_body *body, struct nj_object *object, struct nj_range range);
void nj__body_set_face(struct nj_body *body, struct nj_body *face);

/* What the boundary between several ranges may be long. */
#define NJ_BOUNDARY_MAX 32u

/* A body over several ranges, as multipart/byteranges (RFC 9110 14.6) of *n_bytes bytes: pieces of
 * text, and between them the ranges, one after the other. NULL: none left. */
struct nj_body *nj__body_of_parts(struct nj__files *f, struct nj_object *object,
                                  const struct nj_ranges *ranges, struct nj_str type,
                                  struct nj_str boundary, const void *client, uint64_t *n_bytes);

/* A READ came back; the job is given back to the pool. */
void nj__body_read_done(struct nj__files *f, struct nj__job *job);
/* Ask again for bodies that were refused. To be called after each completion, and when the port has
 * room without one. */
void nj__body_retry(struct nj__files *f);

#endif
