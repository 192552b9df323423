/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to the ports of nj_conns_config.proxy_port: each begins with a PROXY header
 * (proxy_protocol.h), which only trusted proxies may send. Its source is the connection's client
 * from then on: nj__conn_remote(). Until then the connection is the proxy's.
 *
 * The header waits in the receive queue of TCP until it is complete, within preface_timeout. All
 * calls belong to the shard's lcore.
 */
#pragma once

#include "conn/conn.h"

/* Prepares such ports, if the configuration has any. Returns false when memory is refused. */
bool nj__conn_proxy_init(struct nj_conns *cs);
void nj__conn_proxy_fini(struct nj_conns *cs);
/* A connection was opened: if its port is one of these, its header is expected. Returns false,
 * which is counted, if its peer may not send one. */
bool nj__conn_proxy_admit(struct nj_conn *c);
