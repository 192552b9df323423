/* SPDX-License-Identifier: BSD-3-Clause */
/* Begin and end of a connection. All calls belong to the shard's lcore. */
#pragma once

#include "conn/conn.h"

/* Makes the connection that TCP has opened. NULL: all are in use. */
struct nj_conn *nj__conn_new(struct nj_conns *cs, struct nj_tcb *tcb, nj_ns now);
/* Makes the state that a connection needs from its first byte on, if it has none. */
struct nj_conn_active *nj__conn_active(struct nj_conn *c);
/* Sends FIN after what is queued, and discards what the peer still sends. Open streams end. */
void nj__conn_begin_linger(struct nj_conn *c, nj_ns now);
/* Sends RST. The connection is freed in a later step. */
void nj__conn_reset(struct nj_conn *c, nj_ns now);
/* TCP has reported the end, or both sides have finished. */
void nj__conn_free(struct nj_conn *c, nj_ns now);
