/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS of connections: handshakes as tasks of the workers, and records between TCP and HTTP (RFC
 * 8446). A connection to the port of TLS has a struct nj_conn_tls from its first byte on.
 *
 * All calls belong to the shard's lcore, except what the workers run.
 */
#pragma once

#include "base/body_source.h"
#include "base/types.h"
#include "tls/session.h"

/* Handshakes of a shard at once. When nearly all are used, the one that has waited longest for its
 * client ends its connection. */
#define NJ_TLS_HANDSHAKES_MAX 1024u
/* Of these with the workers. Beyond, the client with most of them loses one. */
#define NJ_TLS_TASKS_OUT_MAX  768u

struct nj_conn;
struct nj_conns;

/* Prepares TLS, if the configuration has it. Returns false when memory is refused. */
bool nj__tls_init(struct nj_conns *cs);
/* Waits for handshakes that run. After the connections have ended. */
void nj__tls_fini(struct nj_conns *cs);
/* Takes finished handshakes from the workers, and marks their connections ready. */
void nj__tls_collect_handshakes(struct nj_conns *cs);
/* Wakes the workers, once per step after the connections had their turns. */
void nj__tls_wake_workers(struct nj_conns *cs);
uint32_t nj__tls_n_handshakes(const struct nj_conns *cs);

/* The connection ends: wipes its keys. A handshake that runs is freed when the workers return it.
 */
void nj__conn_tls_free(struct nj_conn *c);
/* Loads what the turns of those of the connections that have TLS read into the cache. */
void nj__conn_tls_prefetch(const struct nj_conn *const *conn, uint32_t n);
/* Begins to read received bytes: continues the handshake. Returns false if nothing can be read. */
bool nj__conn_tls_begin_read(struct nj_conn *c);
/* Reads a record. `*plain` is its plaintext, valid until the next call; without bytes if it carries
 * none, or ends the connection. Returns false if no record is complete, or none may be read. */
bool nj__conn_tls_read_record(struct nj_conn *c, struct nj_tls_src *plain, nj_ns now);
/* Discards what follows the end of the connection or of its input. Sets c->input_waits while the
 * first unread record is incomplete, or a worker has the handshake. */
void nj__conn_tls_end_read(struct nj_conn *c);
/* When the first unread record, which is incomplete, began to wait; NJ_NEVER if there is none, or
 * before the end of the handshake. */
nj_ns nj__conn_tls_unfinished_record_since(const struct nj_conn *c, nj_ns now);
/* Does a worker have the handshake, or its result wait to be read? Requests may be behind it. */
bool nj__conn_tls_is_with_worker(const struct nj_conn *c);
/* Did the handshake agree on HTTP/1.1? Valid once it is established; false before, for HTTP/2, and
 * for cleartext. */
bool nj__conn_tls_speaks_http1(const struct nj_conn *c);
/* For struct nj_framing: the name of the cipher suite, once there are requests. */
const char *nj__conn_tls_suite(const void *conn);
/* The certificate of the client, or NULL. The connection keeps its reference. */
struct nj_client_cert *nj__conn_tls_cert(const void *conn);
/* What the server name of the handshake belongs to. */
const struct nj_site_identity *nj__conn_tls_identity(const void *conn);
/* Sends close_notify. */
void nj__conn_tls_close(struct nj_conn *c);

/* The sink of a session, of a struct nj_conn. What it takes is sealed by nj__conn_tls_flush(),
 * after the session has written. */
uint32_t nj__conn_tls_room(const struct nj_conn *c, uint32_t tcp_room);
bool nj__conn_tls_copy(void *conn, const uint8_t *data, uint32_t n_bytes);
bool nj__conn_tls_refer(void *conn, const struct nj_slice *slice);
/* Returns false if bytes were lost for lack of mbufs. Then nj__conn_tls_is_broken(). */
bool nj__conn_tls_flush(struct nj_conn *c);
/* Were bytes lost? Nothing can be sent any more, and the connection must be reset. */
bool nj__conn_tls_is_broken(const struct nj_conn *c);
