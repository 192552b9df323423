/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All accesses of the script tests to internals of lib/tcp beyond tcp/tcp.h. Adapt tcp_probe.c if
 * fields move, or if a socket option gets a call of its own.
 */
#pragma once

#include <linux/tcp.h>

#include "tcp/tcp.h"

/* Set and get the user of the connection. */
void probe_set_user(struct nj_tcb *t, void *user);
void *probe_user(const struct nj_tcb *t);
const struct nj_tuple *probe_tuple(const struct nj_tcb *t);
bool probe_in_syn_sent(const struct nj_tcb *t);

/* Unread bytes, and queued bytes without acknowledgment (SIOCINQ, SIOCOUTQ). */
uint32_t probe_unread(const struct nj_tcb *t);
uint32_t probe_unacked_bytes(const struct nj_tcb *t);
uint32_t probe_mss(const struct nj_tcb *t);

/* The fields of TCP_INFO that lib/tcp has; the others are 0. */
void probe_tcp_info(const struct nj_tcb *t, struct tcp_info *info);

/* Stop listening: tcp/tcp.h has no call for it, since a server does not need it. */
void probe_unlisten(struct nj_tcp *tcp, uint16_t port);

/* A word of --so_flags that sets an option of the stack. False: unknown. */
bool probe_configure(struct nj_tcp_config *config, const char *name, const char *value);

/* An option of level IPPROTO_TCP or SOL_SOCKET for the stack itself. False: lib/tcp does not
 * support it, and the caller returns ENOPROTOOPT. `t` may be NULL: a socket before connect(), for
 * which only the support is tested. */
bool probe_set_option(struct nj_tcp *tcp, struct nj_tcb *t, int level, int name, int value,
                      nj_ns now);
