/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath: one breath of one lcore, from packets to responses and back to packets.
 * If you read one function in this repository, read nj_shard_step().
 *
 *   rx burst -> parse -> flow lookup -> tcp -> h2 -> handler -> tcp -> tx burst
 *   `------------ nj__net_inhale ------------'`- nj__conns_eat -'
 *
 * A connection with news is eaten depth first: its bytes go through HTTP/2, the request is answered
 * and the answer is queued while all of it is still in this core's cache. What can't be answered at
 * once (a file that is not in memory) goes to a worker and comes back in a later step; a handler
 * that waits does so on a stack of its own, which is left here and resumed in a later step.
 */
#include "shard/shard_internal.h"

uint32_t nj__files_take_done(struct nj_shard *s, nj_ns now)
{
    struct nj_file_job *job[NJ_BURST_MAX];
    const struct nj_file_port *files = &s->cfg.port.files;
    uint32_t n = files->poll ? files->poll(files->ctx, job, NJ_BURST_MAX) : 0;

    for (uint32_t i = 0; i < n; i++)
        nj_site_file_done(s->site, job[i], now);
    return n;
}

uint32_t nj_shard_step(struct nj_shard *s, nj_ns now)
{
    s->now = now;
    nj_stages_begin(&s->stages);

    uint32_t n_rx = nj__net_inhale(s, now); /* bad packets leave here, counted       */

    nj_stage(&s->stages, NJ_STAGE_TCP);
    nj_tcp_tick(&s->tcp, now);                /* retransmission, persist, time-wait    */
    nj_neigh_tick(&s->neigh, now);            /* unanswered ARP and NDP                */
    nj_ndp_tick(&s->ndp, now);                /* our IPv6 addresses and routers        */
    nj_frags_tick(&s->frags, now);            /* packets of which a part never came    */
    uint32_t n_late = nj__conns_tick(s, now); /* peers that stay silent                */

    nj_stage(&s->stages, NJ_STAGE_HANDLER);
    uint32_t n_files = nj__files_take_done(s, now); /* answers that had to wait             */
    uint32_t n_run = nj__handlers_run(s, now);      /* handlers that had to wait            */
    uint32_t n_due = nj__policy_run(s, now);        /* new limits; downloads that have credit */
    nj_stage(&s->stages, NJ_STAGE_TCP);
    uint32_t n_eaten = nj__conns_eat(s, now); /* bytes -> requests -> answers -> bytes */

    uint32_t n_served = nj__net_serve(s, now); /* data, window updates, one ACK each   */
    uint32_t n_tx = nj__net_flush(s);          /* tx burst                             */

    uint32_t work = n_rx + n_late + n_files + n_run + n_due + n_eaten + n_served + n_tx;
    nj_stages_end(&s->stages, work > 0);
    return work;
}
