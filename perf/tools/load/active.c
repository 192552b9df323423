/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active opens. The only choice is the local port. Its replies must come to this shard, by the
 * NIC's RSS or by another shard's steering, and no other connection to the same destination may use
 * it.
 *
 * The search begins at a keyed hash of the destination plus a counter (RFC 6056 3.3.3, algorithm
 * 3). So an observer of the ports to one destination cannot predict those to another, and a port is
 * reused as late as possible.
 */
#include "active.h"

#include "base/keyed_hash.h"

/* Input of the hash. Without padding. Not a struct nj_tuple, whose hash is the ISN's. */
struct place {
    struct nj_addr remote, local;
    uint16_t rport;
};
_Static_assert(sizeof(struct place) == 34, "hashed whole");

uint32_t active_port(const struct nj_steer *steer, const struct nj_flow_table *flows,
                     const struct nj_hash_key *key, uint32_t *counter, struct nj_tuple *t)
{
    struct place place = {t->remote, t->local, t->rport};
    uint32_t start = (uint32_t)nj_hash(key, &place, sizeof place);

    for (uint32_t tries = 1; tries <= NJ_ACTIVE_PORTS; tries++) {
        t->lport = (uint16_t)(NJ_ACTIVE_PORT_MIN + (start + (*counter)++) % NJ_ACTIVE_PORTS);
        bool home = nj_steer_owner(steer, t) == steer->self;
        if (home && !nj_flow_find(flows, nj_flow_hash(flows, t), t))
            return tries;
    }
    return 0;
}

struct nj_tcb *active_open(struct nj_shard *s, uint32_t *counter, const struct nj_addr *local,
                           const struct nj_addr *remote, uint16_t rport, struct nj_conn_user *user,
                           nj_ns now)
{
    struct nj_tuple t = {.remote = *remote, .local = *local, .rport = rport};

    if (s->conns.draining)
        return NULL;
    if (active_port(&s->steer, &s->tcp.flows, &s->cfg.isn_key, counter, &t) == 0)
        return NULL;
    struct nj_tcb *tcb = nj_tcp_connect(&s->tcp, &t, now);
    if (tcb)
        tcb->user = user;
    return tcb;
}
