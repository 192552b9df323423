/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to listeners with has_proxy (base/listener.h): each begins with a PROXY header
 * (proxy_protocol.h), which only trusted proxies may send. Its source is the connection's client
 * from then on: nj__conn_remote(). Until then the connection is the proxy's.
 *
 * The header waits in the receive queue of TCP until it is complete, within preface_timeout. All
 * calls belong to the shard's lcore.
 */
#pragma once

#include "conn/conn.h"

/* Prepares for them, if TCP has such a listener. Returns false when memory is refused. */
bool nj__conn_proxy_init(struct nj_conns *cs);
void nj__conn_proxy_fini(struct nj_conns *cs);
/* A connection was opened: if its listener is one of these, its header is expected. Returns false,
 * which is counted, if its peer may not send one. */
bool nj__conn_proxy_admit(struct nj_conn *c);
