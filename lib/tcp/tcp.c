/* SPDX-License-Identifier: BSD-3-Clause */
/* struct nj_tcp, the connections of a shard: begin, end, and counts. */
#include "tcp/cc/congestion.h"
#include "tcp/loss/scoreboard.h"
#include "tcp/tcp_internal.h"

static bool init_pools(struct nj_tcp *tcp)
{
    const struct nj_tcp_config *c = &tcp->cfg;
    const struct nj_pool *const flows[NJ_FLOW_KINDS] = {
        [NJ_FLOW_TCB] = &tcp->tcbs,
        [NJ_FLOW_SYN] = &tcp->syns,
        [NJ_FLOW_TIME_WAIT] = &tcp->time_waits,
    };
    return nj_pool_init(&tcp->tcbs, sizeof(struct nj_tcb), c->conns_max) &&
           nj_pool_init(&tcp->xfers, sizeof(struct nj_xfer), c->conns_max) &&
           nj_pool_init(&tcp->runs, sizeof(struct nj_sent_run),
                        NJ_SENT_RUNS_SHARD + NJ_SENT_RUNS_RESERVED * c->conns_max) &&
           nj_pool_init(&tcp->syns, sizeof(struct nj_syn), c->half_open_max) &&
           nj_pool_init(&tcp->time_waits, sizeof(struct nj_time_wait), c->time_wait_max) &&
           nj_flow_init(&tcp->flows, flows, &c->flow_key);
}

bool nj_tcp_init(struct nj_tcp *tcp, const struct nj_tcp_config *config, nj_ns now)
{
    memset(tcp, 0, sizeof *tcp);
    tcp->cfg = *config;
    if (!tcp->cfg.cc)
        tcp->cfg.cc = &nj_cc_cubic;
    if (tcp->cfg.time_wait_max == 0)
        tcp->cfg.time_wait_max =
            config->conns_max < NJ_TCP_TIME_WAITS / 2 ? 2 * config->conns_max : NJ_TCP_TIME_WAITS;
    nj_prng_init(&tcp->prng, config->seed);
    nj_list_init(&tcp->ready);
    nj_list_init(&tcp->unfinished);
    nj_list_init(&tcp->pending);
    for (unsigned i = 0; i < NJ_ARRAY_LEN(tcp->syn_due); i++)
        nj_list_init(&tcp->syn_due[i]);
    nj_wheel_init(&tcp->wheel, now);
    if (init_pools(tcp))
        return true;
    nj_tcp_fini(tcp);
    return false;
}

void nj_tcp_fini(struct nj_tcp *tcp)
{
    for (uint32_t i = 0; tcp->flows.entry && i <= tcp->flows.mask; i++) {
        struct nj_tcb *t = nj_flow_tcb(nj_flow_at(&tcp->flows, i));
        if (t)
            nj__tcb_free_queues(tcp, t);
    }
    nj__mbuf_cache_drain(tcp);
    nj_flow_fini(&tcp->flows);
    nj_pool_fini(&tcp->runs);
    nj_pool_fini(&tcp->time_waits);
    nj_pool_fini(&tcp->syns);
    nj_pool_fini(&tcp->xfers);
    nj_pool_fini(&tcp->tcbs);
}

uint32_t nj_tcp_conns(const struct nj_tcp *tcp)
{
    uint32_t waiting = tcp->n_time_wait - tcp->tw_queue.n_live; /* with a user */
    return tcp->tcbs.n_used + tcp->syns.n_used - waiting;
}

bool nj_tcp_expects_handshakes(const struct nj_tcp *tcp, nj_ns now)
{
    return tcp->n_half_open > 0 || nj__cookie_is_expected(tcp, now);
}

uint32_t nj_tcp_conns_less_fin2_orphans(const struct nj_tcp *tcp)
{
    return nj_tcp_conns(tcp) - tcp->n_fin_acked_orphans;
}
