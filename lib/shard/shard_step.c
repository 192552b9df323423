/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datapath: one breath of one lcore, from packets to responses and back to packets.
 * If you read one function in this repository, read nj_shard_step().
 *
 *   rx burst -> parse -> flow lookup -> tcp -> h2 -> handler -> tcp -> tx burst
 *   `------------ nj__net_inhale ------------'`- nj__conns_eat -'
 *
 * It works in batches. Up to NJ_INHALE_MAX packets go through TCP. Then each connection with news
 * has its turn: its whole input is parsed, NJ_EAT_MBUFS_MAX mbufs at most; requests of the site are
 * answered within the parser; up to NJ_ROUND_TASKS requests of routes are consumed, of which none
 * begins after NJ_ROUND_NS; the answers are queued. The other requests wait for a later step.
 *
 * So a request is parsed and consumed by one core, but not one after the other. What that means for
 * caches is measured (docs/ewyk.md, "How hot the cache is"): with 16 connections of 32 requests
 * each, one misses 2.1 lines in 1 MiB, and 84 in 32 KiB. Consumed one by one it would be 1.7 and
 * 66, but several times the misses in the cache of instructions, and 13 % more time.
 *
 * What can't be answered at once (a file that is not in memory) goes to a worker and comes back in
 * a later step; a handler that waits does so on a stack of its own, which is left here and resumed
 * in a later step.
 */
#include "shard/shard_internal.h"

#define KEPT_EVERY NJ_MS /* jobs that wait for memory are looked at */

uint32_t nj__files_take_done(struct nj_shard *s, nj_ns now)
{
    struct nj_file_job *job[NJ_BURST_MAX];
    const struct nj_file_port *files = &s->cfg.port.files;
    uint32_t n = files->poll ? files->poll(files->ctx, job, NJ_BURST_MAX) : 0;

    for (uint32_t i = 0; i < n; i++)
        nj_site_file_done(s->txns.site, job[i], now);
    if (files->poll)
        nj_site_polled(s->txns.site);
    return n;
}

/* --- what happens by itself ------------------------------------------------------------------ */

static uint32_t tick_tcp(struct nj_shard *s, nj_ns now)
{
    nj_tcp_tick(&s->tcp, now);
    return 0;
}

static nj_ns next_tcp(const struct nj_shard *s)
{
    return nj_tcp_next(&s->tcp);
}

static uint32_t tick_neigh(struct nj_shard *s, nj_ns now)
{
    nj_neigh_tick(&s->neigh, now);
    return 0;
}

static nj_ns next_neigh(const struct nj_shard *s)
{
    return s->neigh.tick_at;
}

static uint32_t tick_ndp(struct nj_shard *s, nj_ns now)
{
    nj_ndp_tick(&s->ndp, now);
    return 0;
}

static nj_ns next_ndp(const struct nj_shard *s)
{
    return s->ndp.tick_at;
}

static uint32_t tick_frags(struct nj_shard *s, nj_ns now)
{
    nj_frags_tick(&s->frags, now);
    return 0;
}

static nj_ns next_frags(const struct nj_shard *s)
{
    return s->frags.due_at;
}

/* Not by time: a worker is done when it is done, and wakes who sleeps. Who lets go of memory does
 * not. */
static nj_ns next_files(const struct nj_shard *s)
{
    const struct nj_file_port *files = &s->cfg.port.files;
    bool kept = files->keeps && files->keeps(files->ctx);
    return kept || (s->txns.site && nj_site_wants_room(s->txns.site)) ? s->now + KEPT_EVERY
                                                                      : NJ_NEVER;
}

#define tick_conns    nj__conns_tick
#define next_conns    nj__conns_next
#define tick_files    nj__files_take_done
#define tick_handlers nj__handlers_run
#define next_handlers nj__handlers_next
#define tick_policy   nj__policy_run
#define next_policy   nj__policy_next

/* The parts of a shard that act without a packet, in the order in which they get their turn: with
 * tick_PART(), which returns how much of it counts as work, and before the time of next_PART()
 * there is nothing to do. A list of the preprocessor, for a table of functions costs 1 % of a
 * request. */
/* clang-format off */
#define PARTS(STAGE, PART)                                                        \
    STAGE(NJ_STAGE_TCP)                                                           \
    PART(tcp)      /* retransmission, persist, time-wait */                       \
    PART(neigh)    /* unanswered ARP and NDP */                                   \
    PART(ndp)      /* our IPv6 addresses and routers */                           \
    PART(frags)    /* packets of which a part never came */                       \
    PART(conns)    /* peers that stay silent */                                   \
    STAGE(NJ_STAGE_HANDLER)                                                       \
    PART(files)    /* answers that had to wait */                                 \
    PART(handlers) /* handlers that had to wait */                                \
    PART(policy)   /* new limits; downloads that have credit */
/* clang-format on */

static inline uint32_t tick_parts(struct nj_shard *s, nj_ns now)
{
    uint32_t work = 0;

#define ENTER(stage) nj_stage(&s->stages, stage);
#define TICK(part)   work += tick_##part(s, now);
    PARTS(ENTER, TICK)
    return work;
}

static nj_ns earlier(nj_ns a, nj_ns b)
{
    return a < b ? a : b;
}

nj_ns nj_shard_next(const struct nj_shard *s)
{
    nj_ns next = s->n_txq > 0 ? 0 : NJ_NEVER;

#define PASS(stage)
#define ASK(part) next = earlier(next, next_##part(s));
    PARTS(PASS, ASK)
    return next;
}

uint32_t nj_shard_step(struct nj_shard *s, nj_ns now)
{
    s->now = now;
    nj_stages_begin(&s->stages);

    uint32_t n_rx = nj__net_inhale(s, now); /* bad packets leave here, counted       */
    uint32_t n_due = tick_parts(s, now);    /* time-outs, and what others are done with */

    nj_stage(&s->stages, NJ_STAGE_TCP);
    uint32_t n_eaten = nj__conns_eat(s, now); /* bytes -> requests -> answers -> bytes */

    uint32_t n_served = nj__net_serve(s, now); /* data, window updates, one ACK each   */
    uint32_t n_tx = nj__net_flush(s);          /* tx burst                             */

    uint32_t work = n_rx + n_due + n_eaten + n_served + n_tx;
    nj_stages_end(&s->stages, work > 0);
    return work;
}
