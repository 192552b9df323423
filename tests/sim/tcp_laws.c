/* SPDX-License-Identifier: BSD-3-Clause */
/* Invariants inside a host: windows, time-outs, counts, released memory. */
#include "support/mbuf_env.h"
#include "telem/counters.h"
#include "tcp_sim.h"

static void law(const struct tsim_side *s, const char *what, uint64_t a, uint64_t b)
{
    nj_tsim_fail(s->flow->sim, "flow %u host %u: %s (%lu, %lu)", s->flow->index, s->host, what,
                 (unsigned long)a, (unsigned long)b);
}

static uint32_t initial_window(const struct tsim_look *l)
{
    return TSIM_IW_SEGS * l->mss > TSIM_IW_BYTES ? TSIM_IW_SEGS * l->mss : TSIM_IW_BYTES;
}

/* For any number of ACKs, a window grows by at most the acknowledged bytes (RFC 5681 3.1, RFC
 * 3465), and never falls below one segment. */
static void check_cwnd(struct tsim_side *s)
{
    struct tsim_look l = nj_tsim_look(s->tcb);
    uint64_t acked = l.snd_una - s->flow->track[s->host].iss;

    if (l.state < NJ_TCP_ESTABLISHED || l.state == NJ_TCP_TIME_WAIT)
        return;
    if (l.cwnd < l.mss)
        law(s, "cwnd below a segment", l.cwnd, l.mss);
    /* Bytes that a false SACK reports count when reported, and again when it is withdrawn. */
    bool lies = s->flow->sim->mix.evil & (TSIM_LIE_SACK | TSIM_OPTIMISTIC);
    if (!lies && !l.in_recovery && l.cwnd > initial_window(&l) + acked + l.sacked)
        law(s, "cwnd grew by more than was acknowledged", l.cwnd, acked);
    s->rto_seen = l.rto;
}

void nj_tsim_check_new_data(struct tsim_side *s, uint32_t n_bytes)
{
    if (!s->tcb)
        return;
    struct tsim_look l = nj_tsim_look(s->tcb);
    bool probe = n_bytes == 1 && l.pipe == 0;

    if (!probe && l.pipe + n_bytes > l.pipe_max + TSIM_OVER_CWND_SEGS * l.mss)
        law(s, "new data beyond the congestion window", l.pipe + n_bytes, l.cwnd);
}

/* Time of the first transmission of the segment with `seq`, if known; 0: long ago. A
 * retransmission need not restart the timer (RFC 6298 5.3). */
static nj_ns sent_at(const struct tsim_track *k, uint32_t seq)
{
    uint32_t n = k->n_sends < TSIM_SENDS_MAX ? k->n_sends : TSIM_SENDS_MAX;

    if (k->n_sends > TSIM_SENDS_MAX)
        return 0;
    for (uint32_t i = n; i > 0; i--) {
        const struct tsim_send *e = &k->send[(k->n_sends - i) % TSIM_SENDS_MAX];
        if (nj_seq_le(e->first, seq) && nj_seq_lt(seq, e->end))
            return e->at;
    }
    return 0;
}

/* RFC 6298 5: the time-out starts when its segment is sent, or later. */
static void check_rto(struct tsim_side *s, const struct tsim_look *l)
{
    nj_ns now = s->flow->sim->now, at = sent_at(&s->flow->track[s->host], l->snd_una);
    nj_ns rto = s->rto_seen < l->rto ? s->rto_seen : l->rto;

    rto = TSIM_RTO_EXACT && rto > TSIM_RTO_LEAST ? rto : TSIM_RTO_LEAST;
    if (at && now - at + TSIM_TICK < rto)
        law(s, "a time-out before its time (us)", (now - at) / NJ_US, rto / NJ_US);
}

static bool was_sacked(const struct tsim_track *k, uint32_t first, uint32_t end)
{
    for (uint32_t i = 0; i < k->n_sacked; i++)
        if (nj_seq_le(k->sacked[i].first, first) && nj_seq_le(end, k->sacked[i].end))
            return true;
    return false;
}

void nj_tsim_check_resent(struct tsim_side *s, const struct sim_raw *r)
{
    struct tsim_host *h = &s->flow->sim->host[s->host];
    struct tsim_track *k = &s->flow->track[s->host];

    h->n_resent++;
    if (!s->tcb)
        return;
    struct tsim_look l = nj_tsim_look(s->tcb);
    if (nj_counter_read(&h->counters, NJ_C_tcp_rto) != h->rto_seen) {

        /* The counter belongs to the host: with one flow it identifies the flow's time-out. */
        bool its_own = s->flow->sim->n_flows == 1 && r->seq == l.snd_una;
        if (its_own && nj_counter_read(&h->counters, NJ_C_mbuf_none) == 0)
            check_rto(s, &l);
    }
    /* The first byte may be retransmitted: its absence shows that it was discarded. */
    bool lies = s->flow->sim->mix.evil & (TSIM_LIE_SACK | TSIM_OPTIMISTIC);
    /* A reordered ACK is ignored if its number or timestamp is too old. */
    bool unheard = nj_counter_read(&h->counters, NJ_C_drop_tcp_window) > 0 ||
                   nj_counter_read(&h->counters, NJ_C_drop_tcp_paws) > 0 ||
                   nj_counter_read(&h->counters, NJ_C_drop_tcp_ack) > 0;
    if (!lies && !unheard && r->seq != l.snd_una && was_sacked(k, r->seq, r->seq + r->n_data))
        law(s, "retransmits SACKed data", r->seq - k->iss, r->n_data);
}

/* --- counts -------------------------------------------------------------------------------- */

static void check_accounts(struct tsim_host *h)
{
    const struct nj_counters *c = &h->counters;
    uint64_t known =
        nj_counters_sum_of_kind(c, NJ_KIND_RX_OUT) + nj_counters_sum_of_kind(c, NJ_KIND_RX_DROP);

    if (known != h->n_received)
        nj_tsim_fail(h->sim, "host %u: %lu packets came, %lu are accounted for", h->index,
                     (unsigned long)h->n_received, (unsigned long)known);
    if (nj_counter_read(c, NJ_C_tcp_rst_out) != h->n_resets && !h->sim->mix.flood_every)
        nj_tsim_fail(h->sim, "host %u: %lu resets were sent, %lu counted", h->index,
                     (unsigned long)h->n_resets,
                     (unsigned long)nj_counter_read(c, NJ_C_tcp_rst_out));
    /* Simultaneous opens also pass through SYN-RECEIVED. */
    if (nj_tsim_half_open(&h->tcp) > h->tcp.cfg.half_open_max + TSIM_FLOWS_MAX ||
        nj_tsim_blocks(&h->tcp) > h->tcp.cfg.conns_max ||
        (h->tcp.cfg.held_max && nj_tsim_held(&h->tcp) > h->tcp.cfg.held_max + TSIM_FLOWS_MAX))
        nj_tsim_fail(h->sim, "host %u: bounds: %u half-open, %u blocks, %u mbufs held", h->index,
                     nj_tsim_half_open(&h->tcp), nj_tsim_blocks(&h->tcp), nj_tsim_held(&h->tcp));
}

/* A second of this check overlaps at most two of the host's. */
static void check_challenges(struct tsim_host *h)
{
    uint64_t n = nj_counter_read(&h->counters, NJ_C_tcp_challenge_ack);

    if (h->sim->now - h->second_at >= NJ_SEC) {
        h->second_at = h->sim->now;
        h->challenges_before = n;
    }
    if (n - h->challenges_before > 2 * TSIM_CHALLENGES_PER_S)
        nj_tsim_fail(h->sim, "host %u: %lu challenge ACKs within a second", h->index,
                     (unsigned long)(n - h->challenges_before));
}

void nj_tsim_check_step(struct tsim_host *h)
{
    struct tsim *sim = h->sim;

    for (uint32_t i = 0; i < sim->n_flows; i++) {
        struct tsim_side *s = &sim->flow[i].side[h->index];
        if (s->state == TSIM_OPEN && !s->aborted)
            check_cwnd(s);
    }
    check_challenges(h);
    check_accounts(h);
}

/* --- at the end ---------------------------------------------------------------------------- */

static void check_host(struct tsim_host *h)
{
    const struct sim_channel_stats *l = &h->sim->channel.stats;

    check_accounts(h);
    if (nj_tsim_blocks(&h->tcp) || nj_tsim_half_open(&h->tcp) || nj_tsim_timers(&h->tcp) ||
        nj_tsim_held(&h->tcp))
        nj_tsim_fail(h->sim, "host %u: %u blocks, %u half-open, %u timers, %u mbufs are left",
                     h->index, nj_tsim_blocks(&h->tcp), nj_tsim_half_open(&h->tcp),
                     nj_tsim_timers(&h->tcp), nj_tsim_held(&h->tcp));
    if (h->n_malformed > l->corrupted + l->truncated && !h->sim->mix.path_mtu)
        nj_tsim_fail(h->sim, "host %u: %lu malformed packets, %lu were damaged", h->index,
                     (unsigned long)h->n_malformed, (unsigned long)(l->corrupted + l->truncated));
    uint64_t n_rto = nj_counter_read(&h->counters, NJ_C_tcp_rto);
    uint64_t again = nj_counter_read(&h->counters, NJ_C_tcp_retransmit);
    /* A segment may be unsent when its ACK arrives, once per flow: time-outs of all flows may
     * coincide, and so may the ACKs, together with the peer's retransmissions after the same
     * time. */
    if (n_rto > h->sim->n_flows + again + nj_counter_read(&h->counters, NJ_C_mbuf_none))
        nj_tsim_fail(h->sim, "host %u: %lu time-outs, %lu retransmissions", h->index,
                     (unsigned long)n_rto, (unsigned long)again);
}

void nj_tsim_check_quiet(struct tsim *sim)
{
    for (uint32_t i = 0; i < sim->n_flows; i++)
        nj_tsim_flow_check(&sim->flow[i]);
    check_host(&sim->host[0]);
    check_host(&sim->host[1]);
}

void nj_tsim_check_freed(struct tsim *sim)
{
    for (uint32_t i = 0; i < 2; i++)
        if (!nj_test_pool_full(sim->host[i].rx_pool) || !nj_test_pool_full(sim->host[i].tx_pool))
            nj_tsim_fail(sim, "host %u: %u + %u mbufs are missing", i,
                         rte_mempool_in_use_count(sim->host[i].rx_pool),
                         rte_mempool_in_use_count(sim->host[i].tx_pool));
}
