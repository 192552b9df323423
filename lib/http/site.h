/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A folder served over HTTP: request in, reply out, once, now or later.
 *
 * Pure: files are only named here; opening and reading them is asked of a worker through
 * nj_file_port. Each shard has its own site and a small table of the objects it used lately, so a
 * hot file is answered without leaving the lcore. One lcore only.
 */
#ifndef NJ_HTTP_SITE_H
#define NJ_HTTP_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/hash.h"
#include "base/request_head.h"
#include "base/types.h"
#include "http/file_port.h"
#include "http/site_options.h"
#include "http/target.h"

struct nj_counters;

struct nj_http_request {
    const struct nj_request_head *head;
    const struct nj_target *target; /* nj_site_target() of its path */
    const void *client;             /* whose request it is, see struct nj_file_job */
};

#define NJ_REPLY_FIELDS_MAX 16

struct nj_http_reply {
    uint16_t status;
    uint32_t n_fields;
    uint64_t stamp; /* not 0: status and fields are those of each reply of the site that had it */
    struct nj_field fields[NJ_REPLY_FIELDS_MAX]; /* strings live until on_reply returns */
    struct nj_body *body;                        /* NULL: none. Now the receiver's to close */
};

struct nj_site_events {
    /* The answer. `stream` is what nj_site_request() was given. */
    void (*on_reply)(void *ctx, void *stream, const struct nj_http_reply *reply);
    /* A body that had shown nothing has bytes again or broke; `waiter` is body->waiter. */
    void (*on_wake)(void *ctx, void *waiter);
};

struct nj_site_config {
    const struct nj_site_events *events;
    void *events_ctx;
    const struct nj_file_port *files;
    struct nj_counters *counters;
    int64_t wall_s_at_zero; /* UNIX time when the shard's clock was 0, for the Date field */
    uint32_t exchanges_max; /* requests waiting for a worker, and bodies streaming from one */
    const struct nj_site_options *options; /* NULL: the defaults */
    struct nj_hash_key hash_key; /* random, so that nobody can choose names that collide */
};

struct nj_site;
struct nj_site_wait; /* a request that waits for a worker */

/* NULL when memory ran out. */
struct nj_site *nj_site_new(const struct nj_site_config *config);
/* Every exchange must be cancelled, every body closed and every file job completed before. */
void nj_site_free(struct nj_site *site);

/* What the target of a request names, for the site and for whoever else asks for its path. Strings
 * live until the next call, and no longer than `path`. */
void nj_site_target(struct nj_site *site, struct nj_str path, struct nj_target *out);

/*
 * Answer a request. Usually on_reply() runs before this returns, and the result is NULL; else the
 * result stands for the wait and is dead once on_reply() ran or nj_site_cancel() was called.
 */
struct nj_site_wait *nj_site_request(struct nj_site *site, const struct nj_http_request *req,
                                     void *stream, nj_ns now);
void nj_site_cancel(struct nj_site_wait *x);

/* A job given to the file port came back. `job` belongs to the site again. */
void nj_site_file_done(struct nj_site *site, struct nj_file_job *job, nj_ns now);

/* To be called after each poll of the file port, when what it gave was done. */
void nj_site_polled(struct nj_site *site);
/* Does it wait for room in the port, which nothing may tell of but poll()? */
bool nj_site_wants_room(const struct nj_site *site);

/* So many more requests may wait for a worker, or stream from one. */
uint32_t nj_site_left(const struct nj_site *site);

/* Jobs that are with a worker now. */
uint32_t nj_site_jobs_out(const struct nj_site *site);

#endif
