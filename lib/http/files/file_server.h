/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file server: the built-in handler, which answers what no route does. It never blocks: what
 * it knows it answers at once, and else it waits without a stack.
 *
 * Pure: files are only named here; opening and reading them is asked of a worker through
 * nj_file_port. Each shard has its own site and a small table of the objects it used lately, so a
 * hot file is answered without leaving the lcore. One lcore only.
 */
#ifndef NJ_HTTP_FILES_FILE_SERVER_H
#define NJ_HTTP_FILES_FILE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/hash.h"
#include "base/request_head.h"
#include "base/types.h"
#include "http/files/file_ops.h"
#include "http/files/file_server_options.h"
#include "http/proto/path_cache.h"
#include "http/transaction.h"

struct nj_site_config {
    struct nj_txns *txns; /* to which all its requests belong */
    const struct nj_file_port *files;
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

/* Answer a request, usually before this returns; else t->wait stands for the wait, until it is
 * answered or nj_site_cancel() is called. `target` is nj_site_target() of its path. */
void nj_site_serve(struct nj_site *site, struct nj_txn *t, const struct nj_request_head *head,
                   const struct nj_target *target, nj_ns now);
/* Send the file of that name (below the root, without '/' before it; 1 to NJ_PATH_MAX - 1 bytes,
 * no segment "." or "..") on behalf of a handler, with fields of its own besides, which live as
 * long as `t`. Conditions, ranges and codings are those of `head`, if its method is GET or HEAD. */
void nj_site_send(struct nj_site *site, struct nj_txn *t, const struct nj_request_head *head,
                  struct nj_str name, const struct nj_field *extra, uint32_t n_extra, nj_ns now);
/* Nobody wants an answer any more. */
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
