/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath: one step of one lcore, from packets to responses and back to packets.
 * If you read one function in this repository, read nj_shard_step().
 *
 *   rx burst -> parse -> flow lookup -> tcp -> h2 -> handler -> tcp -> tx burst
 *   `------------ nj__net_rx_burst ------------'`- nj_conns_process -'
 *
 * A step works in batches. Up to NJ_RX_BATCH_MAX packets go through TCP. Then each connection with
 * events is processed: its whole input is parsed, NJ_READ_MBUFS_MAX mbufs at most. Requests for
 * files are answered within the parser. Up to NJ_ROUND_TASKS requests of routes are consumed, none
 * of them after NJ_ROUND_NS. Responses are queued. Further requests wait for a later step.
 *
 * So one core parses and consumes a request, but not one request after the other. The effect on
 * caches is measured (docs/ewyk.md, "Cache locality"): with 16 connections of 32 requests
 * each, a request misses 2.1 lines in 1 MiB, and 84 in 32 KiB. One by one it would miss 1.7 and 66,
 * but several times as many lines of instructions, and take 13 % more time.
 *
 * A request that cannot be answered at once (its file is not in memory) is given to a worker and
 * continues in a later step. A handler that waits keeps its stack and is resumed in a later
 * step.
 */
#include "shard/shard_internal.h"

/* --- timers and completions ------------------------------------------------------------------ */

/* The parts of a shard that act without a packet, in the order they run: what each does, and the
 * time before which nothing is due. A PART() returns the amount of work; a TIMER() returns nothing,
 * and does not count as work. They are retransmission, persist and time-wait; unanswered ARP and
 * NDP; our IPv6 addresses and routers; incomplete fragmented packets; timeouts of connections;
 * responses that waited for files; handlers that waited; a new policy, and responses that have
 * credit. A macro list, because a table of functions costs 1 % of a request. */
/* clang-format off */
#define PARTS(STAGE, TIMER, PART)                                                                  \
    STAGE(NJ_STAGE_TCP)                                                                            \
    TIMER(nj_tcp_tick(&s->tcp, now), nj_tcp_next_deadline(&s->tcp))                                \
    TIMER(nj_neigh_tick(&s->neigh, now), s->neigh.tick_at)                                         \
    TIMER(nj_nd_host_tick(&s->ndp, now), s->ndp.tick_at)                                           \
    TIMER(nj_ip4_reasm_tick(&s->frags, now), s->frags.due_at)                                      \
    PART(nj_conns_tick(&s->conns, now), nj_conns_next_at(&s->conns))                               \
    STAGE(NJ_STAGE_HANDLER)                                                                        \
    PART(nj_conns_complete_file_jobs(&s->conns, now), nj_conns_file_jobs_next_at(&s->conns))       \
    PART(nj_conns_run_handlers(&s->conns, now), nj_conns_handlers_next_at(&s->conns))              \
    PART(nj_conns_adopt_policy_and_run_shaper(&s->conns, now), nj_conns_policy_next_at(&s->conns))
/* clang-format on */

static inline uint32_t tick_parts(struct nj_shard *s, nj_ns now)
{
    uint32_t work = 0;

#define ENTER(stage)     nj_stage(&s->stages, stage);
#define TICK(tick, next) tick;
#define WORK(tick, next) work += tick;
    PARTS(ENTER, TICK, WORK)
    return work;
}

nj_ns nj_shard_next_at(const struct nj_shard *s)
{
    nj_ns next = s->n_txq > 0 ? 0 : NJ_NEVER;

#define PASS(stage)
#define ASK(tick, next_at) next = nj_min_u64(next, next_at);
    PARTS(PASS, ASK, ASK)
    return next;
}

uint32_t nj_shard_step(struct nj_shard *s, nj_ns now)
{
    s->now = now;
    nj_conns_begin_step(&s->conns, now);
    nj_stages_begin_step(&s->stages);

    uint32_t n_rx = nj__net_rx_burst(s, now); /* bad packets are dropped and counted */
    uint32_t n_due = tick_parts(s, now);      /* timers, and completions of workers */

    nj_stage(&s->stages, NJ_STAGE_TCP);
    uint32_t n_processed = nj_conns_process(&s->conns, now); /* input -> requests -> responses */

    uint32_t n_served = nj__net_tcp_output_all(s, now); /* data, window updates, one ACK each   */
    uint32_t n_tx = nj__net_tx_burst(s);                /* tx burst                             */

    uint32_t work = n_rx + n_due + n_processed + n_served + n_tx;
    nj_stages_end_step(&s->stages, work > 0);
    return work;
}
