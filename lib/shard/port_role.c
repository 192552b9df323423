/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes share a port during an upgrade. Each handles the packets of its own connections.
 * The role decides who handles the others: handshakes, stray segments, and ICMP errors about such.
 */
#include <rte_mbuf.h>

#include "shard/shard_internal.h"
#include "telem/counters_packet.h"

static bool pass_on(struct nj_shard *s, const struct rte_mbuf *m, nj_counter *counted)
{
    bool passed = s->cfg.ops.pass_on(s->cfg.ops.ctx, m);

    *counted = passed ? NJ_C_rx_peer_out : NJ_C_drop_peer_full;
    return true;
}

/* If each frame arrives at both processes, the one that yields passes on what is not its own, so
 * that one process decides. */
bool nj__port_is_for_peer(void *shard, const struct rte_mbuf *m, nj_counter *counted)
{
    struct nj_shard *s = shard;

    switch (s->role) {
    case NJ_PORT_ALONE:
    case NJ_PORT_KEEPS:
        break;
    case NJ_PORT_TAKES:
        if (nj_is_from_peer_process(m))
            break;
        if (!s->cfg.frames_reach_both)
            return pass_on(s, m, counted);
        *counted = NJ_C_drop_peer;
        return true;
    case NJ_PORT_YIELDS:
        return pass_on(s, m, counted);
    }
    return false;
}

bool nj__port_peer_answers(const struct nj_shard *s, const struct rte_mbuf *m)
{
    return s->role != NJ_PORT_ALONE &&
           (nj_is_from_peer_process(m) || (s->role == NJ_PORT_TAKES && s->cfg.frames_reach_both));
}

void nj_shard_set_port_role(struct nj_shard *s, enum nj_port_role role, nj_ns now)
{
    enum nj_port_role was = s->role;

    if (role == was)
        return;
    s->role = role;
    s->cfg.ops.rx = role == NJ_PORT_ALONE ? s->rx_alone : s->cfg.ops.rx_shared;
    s->tcp.shared = role != NJ_PORT_ALONE;
    if (was == NJ_PORT_YIELDS || role == NJ_PORT_YIELDS)
        nj_conns_yield(&s->conns, role == NJ_PORT_YIELDS, now);
}
