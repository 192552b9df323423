/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every look of the script tests into lib/tcp that goes past the calls of tcp/tcp.h. When fields
 * move, or when a socket option gets a call of its own, tcp_probe.c is the place to follow.
 */
#ifndef NJ_TESTS_SCRIPT_TCP_PROBE_H
#define NJ_TESTS_SCRIPT_TCP_PROBE_H

#include <linux/tcp.h>

#include "tcp/tcp.h"

/* Give the connection its user, and ask who that is. */
void probe_set_user(struct nj_tcb *t, void *user);
void *probe_user(const struct nj_tcb *t);
const struct nj_tuple *probe_tuple(const struct nj_tcb *t);
bool probe_in_syn_sent(const struct nj_tcb *t);

/* Bytes that wait to be read, bytes that are queued and not yet acknowledged (SIOCINQ, SIOCOUTQ).
 */
uint32_t probe_unread(const struct nj_tcb *t);
uint32_t probe_unacked_bytes(const struct nj_tcb *t);
uint32_t probe_mss(const struct nj_tcb *t);

/* What TCP_INFO says: the fields that lib/tcp knows, the others are 0. */
void probe_tcp_info(const struct nj_tcb *t, struct tcp_info *info);

/* Stop listening: tcp/tcp.h has no call for it, since a server never does. */
void probe_unlisten(struct nj_tcp *tcp, uint16_t port);

/* A word of --so_flags that concerns the configuration of the stack. False: not known. */
bool probe_configure(struct nj_tcp_config *config, const char *name, const char *value);

/* An option of level IPPROTO_TCP or SOL_SOCKET that the stack itself has to know. False: lib/tcp
 * has no such thing; the caller says ENOPROTOOPT instead of pretending. `t` may be NULL: a socket
 * before connect(), which must only be told whether the option exists. */
bool probe_set_option(struct nj_tcp *tcp, struct nj_tcb *t, int level, int name, int value,
                      nj_ns now);

#endif
