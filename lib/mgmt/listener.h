/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The management listener: HTTP/1.1 at sockets of the kernel, by libmicrohttpd on one thread of its
 * own. It reads what lcores write, and waits for none of them. routes.h has what it answers,
 * docs/observe.md who may ask.
 */
#pragma once

#include <sched.h>
#include <stddef.h>

#include "mgmt/access_tokens.h"
#include "mgmt/listener_sockets.h"
#include "mgmt/view.h"

struct nj_mgmt_listener;

/* Start the thread on these CPUs. `sockets`, which are published, and `view` have to stay until
 * nj_mgmt_listener_stop(). Returns the listener, or NULL with the reason. Main thread. */
struct nj_mgmt_listener *nj_mgmt_listener_start(const struct nj_mgmt_view *view,
                                                struct nj_mgmt_sockets *sockets,
                                                const cpu_set_t *cpus, char *why, size_t why_bytes);
/* Close all connections, end the thread, free the listener. Waits for a request in progress. NULL
 * is valid. Main thread. */
void nj_mgmt_listener_stop(struct nj_mgmt_listener *l);

/* Use these tokens. Any thread; before the first call there are no tokens. */
void nj_mgmt_listener_set(struct nj_mgmt_listener *l, const struct nj_mgmt_tokens *tokens);
/* Another process takes the connections of the TCP sockets, or does so no longer. The supervisor.
 */
void nj_mgmt_listener_yield(struct nj_mgmt_listener *l, bool yields);
