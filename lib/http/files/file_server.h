/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file server: the built-in handler for requests that match no route. It serves GET and HEAD
 * from a folder with preconditions (RFC 9110 13), ranges (14) and precompressed codings (12).
 *
 * It never blocks. A cached file is answered on the lcore at once; other requests wait for a
 * worker's job, without a stack. Pure: files are opened and read through nj_file_ops. Each shard
 * has its own file server and cache. One lcore only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/header_field.h"
#include "base/keyed_hash.h"
#include "base/request_head.h"
#include "base/types.h"
#include "http/files/file_ops.h"
#include "http/files/file_server_options.h"
#include "http/proto/path_cache.h"
#include "http/transaction.h"

struct nj_file_server_config {
    struct nj_txns *txns; /* owns all requests */
    const struct nj_file_ops *files;
    uint32_t exchanges_max; /* limit of waiting requests, and of bodies streamed by workers */
    const struct nj_file_server_options *options;
    struct nj_hash_key hash_key; /* random, so that clients cannot choose colliding names */
};

struct nj_file_server;

/* NULL when memory is refused. */
struct nj_file_server *nj_file_server_new(const struct nj_file_server_config *config);
/* Before: every waiting request is cancelled, every body closed and every file job completed. */
void nj_file_server_free(struct nj_file_server *site);

/* Parses a request target, for the file server and for all other users of its path. Strings are
 * valid until the next call, and no longer than `path`. */
void nj_file_server_parse_target(struct nj_file_server *site, struct nj_str path,
                                 struct nj_target *out);

/* Each of the three functions below answers a request, with 503 if its client has its share of
 * those that may wait. */

/* Responds to GET or HEAD of a target that is NJ_PATH_OK, or to OPTIONS: usually before this
 * returns, else t->wait is set until the response, nj_file_server_cancel() or nj_txn_end().
 * `target` is nj_file_server_parse_target() of its path. */
void nj_file_server_serve(struct nj_file_server *site, struct nj_txn *t,
                          const struct nj_request_head *head, const struct nj_target *target,
                          nj_ns now);
/* Sends a file on behalf of a handler. `name` is relative to the root, without leading '/', 1 to
 * NJ_PATH_MAX - 1 bytes, without "." and ".." segments. `extra` are fields of the handler, which
 * live as long as `t`. Preconditions, ranges and codings of `head` apply if its method is GET or
 * HEAD. As nj_file_server_serve(). */
void nj_file_server_send(struct nj_file_server *site, struct nj_txn *t,
                         const struct nj_request_head *head, struct nj_str name,
                         const struct nj_field *extra, uint32_t n_extra, nj_ns now);
/* Sends an error: the page that is configured for the status, or a line of text. As
 * nj_file_server_serve(). */
void nj_file_server_send_error(struct nj_file_server *site, struct nj_txn *t, uint16_t status,
                               nj_ns now);
/* The path of the file that a worker opens for this transaction; empty: none is opened. Valid until
 * the next call for the transaction. */
struct nj_str nj_file_server_waited_path(const struct nj_txn *t);
/* Cancels a request that waits, which is not answered. Any other transaction: no effect. */
void nj_file_server_cancel(struct nj_txn *t);

/* Handles a completed file job, which belongs to the file server from here on. */
void nj_file_server_job_done(struct nj_file_server *site, struct nj_file_job *job, nj_ns now);

/* To be called after each poll of completed jobs, when they were handled. */
void nj_file_server_retry_reads(struct nj_file_server *site);
/* True if a READ waits for room in the queue, which only poll() can signal. */
bool nj_file_server_has_refused_reads(const struct nj_file_server *site);

/* Submitted jobs that have not completed. */
uint32_t nj_file_server_jobs_in_flight(const struct nj_file_server *site);
