/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that listen (RFC 9293 3.10.1, passive OPEN), and room for another connection. */
#include "base/compiler.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

bool nj_tcp_listen(struct nj_tcp *tcp, const struct nj_listener *listener)
{
    struct nj_listeners *l = &tcp->listeners;

    if (l->n == NJ_LISTENERS_MAX)
        return false;
    l->at[l->n++] = *listener;
    return true;
}

bool nj__tcp_is_listening(const struct nj_tcp *tcp, const struct nj_tuple *t)
{
    return nj_listener_find(&tcp->listeners, &t->local, t->lport) != NULL;
}

bool nj__syn_backlog_full(const struct nj_tcp *tcp)
{
    return tcp->n_half_open >= tcp->cfg.half_open_max;
}

bool nj_tcp_is_nearly_full(const struct nj_tcp *tcp)
{
    return tcp->tcbs.n_used >= tcp->cfg.conns_max - tcp->cfg.conns_max / NJ_TCP_NEARLY_FULL_PART;
}

static bool can_evict_for(const struct nj_tcp *tcp, const struct nj_tcp_arrival *a, bool proven)
{
    return tcp->cfg.can_evict_for &&
           tcp->cfg.can_evict_for(tcp->cfg.ctx, &a->seg.tuple.remote, proven);
}

/* Refuse a SYN when all received mbufs are held: the first payload of each connection takes one.
 * The user of TCP resets connections long before. When few control blocks are left, accept only
 * peers for which another connection can be evicted. */
static bool must_refuse_syn(const struct nj_tcp *tcp, const struct nj_tcp_arrival *a)
{
    return (tcp->cfg.held_max > 0 && tcp->n_held >= tcp->cfg.held_max) ||
           (nj_tcp_is_nearly_full(tcp) && !can_evict_for(tcp, a, false));
}

void nj__tcp_evict_if_nearly_full(const struct nj_tcp *tcp, const struct nj_tcp_arrival *a)
{
    if (nj_unlikely(nj_tcp_is_nearly_full(tcp)))
        (void)can_evict_for(tcp, a, true);
}

enum nj_tcp_verdict nj__tcp_check_syn_room(const struct nj_tcp *tcp, struct nj_tcp_arrival *a)
{
    if (tcp->draining)
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_draining);
    if (must_refuse_syn(tcp, a))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_full);
    return NJ_VERDICT_PASS;
}
