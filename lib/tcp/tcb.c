/* SPDX-License-Identifier: BSD-3-Clause */
/* The life cycle of a control block: allocation, state changes (RFC 9293 3.3.2, figure 5), end and
 * release. */

#include "base/assert.h"
#include "tcp/loss/scoreboard.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

const char *const nj_tcp_state_name[] = {
#define NJ_TCP_STATE(name) [NJ_TCP_##name] = #name,
#include "tcp/state.def"
#undef NJ_TCP_STATE
};

#define TO(name) (1u << NJ_TCP_##name)

/* The transitions of RFC 9293 figure 5. CLOSED is reachable from every state. */
static const uint16_t legal_next[] = {
    [NJ_TCP_CLOSED] = TO(SYN_SENT) | TO(SYN_RECEIVED),
    [NJ_TCP_SYN_SENT] = TO(SYN_RECEIVED) | TO(ESTABLISHED),
    [NJ_TCP_SYN_RECEIVED] = TO(ESTABLISHED),
    [NJ_TCP_ESTABLISHED] = TO(FIN_WAIT_1) | TO(CLOSE_WAIT),
    [NJ_TCP_FIN_WAIT_1] = TO(FIN_WAIT_2) | TO(CLOSING) | TO(TIME_WAIT),
    [NJ_TCP_FIN_WAIT_2] = TO(TIME_WAIT),
    [NJ_TCP_CLOSE_WAIT] = TO(LAST_ACK),
    [NJ_TCP_CLOSING] = TO(TIME_WAIT),
    [NJ_TCP_LAST_ACK] = 0,
    [NJ_TCP_TIME_WAIT] = 0,
};

void nj__tcb_set_state(struct nj_tcp *tcp, struct nj_tcb *t, enum nj_tcp_state next)
{
    NJ_ASSERT(next == NJ_TCP_CLOSED || (legal_next[t->state] & 1u << next));
    tcp->n_half_open -= t->state == NJ_TCP_SYN_RECEIVED;
    tcp->n_time_wait -= t->state == NJ_TCP_TIME_WAIT;
    tcp->n_half_open += next == NJ_TCP_SYN_RECEIVED;
    tcp->n_time_wait += next == NJ_TCP_TIME_WAIT;
    tcp->n_fin_acked_orphans -= t->is_orphan && t->state == NJ_TCP_FIN_WAIT_2;
    tcp->n_fin_acked_orphans += t->is_orphan && next == NJ_TCP_FIN_WAIT_2;
    t->state = (uint8_t)next;
}

struct nj_tcb *nj__tcb_new(struct nj_tcp *tcp, const struct nj_tuple *tuple,
                           const struct nj_flow *old, uint32_t iss, nj_ns now)
{
    struct nj_tcb *t = nj_pool_take(&tcp->tcbs);
    if (!t)
        return NULL;
    nj__flow_init_kind(&t->flow, NJ_FLOW_TCB, now);
    t->challenge_ms = (uint16_t)((now - NJ_TCP_CHALLENGE_INTERVAL) / NJ_MS);
    if (old) {
        nj_flow_replace(&tcp->flows, old, &t->flow);
    } else {
        t->flow.tuple = *tuple;
        t->flow.hash = nj_flow_hash(&tcp->flows, tuple);
        nj_flow_insert(&tcp->flows, &t->flow);
    }
    tuple = &t->flow.tuple;
    t->heard_at = now;
    t->ts_offset = nj__tcp_ts_offset_of_tuple(tcp, tuple);
    nj_timer_init(&t->timer);
    t->snd_una = t->snd_nxt = iss;
    t->ack_min = iss + 1;
    nj__tcb_attach_xfer(tcp, t);
    t->x->iss = t->x->high_seq = iss;
    t->x->progress_at = now;
    t->x->last_send_at = 0;
    t->snd_mss = nj__tcp_peer_mss(tcp, tuple, &(struct nj_tcp_opts){.has_mss = false});
    return t;
}

struct nj_tcb *nj__tcb_new_syn_received(struct nj_tcp *tcp, const struct nj_flow *old,
                                        const struct nj_tuple *tuple, const struct nj_handshake *h,
                                        nj_ns now)
{
    struct nj_tcb *t = nj__tcb_new(tcp, tuple, old, h->iss, now);
    if (!t)
        return NULL;
    t->snd_nxt = h->iss + 1;
    t->x->irs = h->irs;
    t->rcv_nxt = t->last_ack_sent = h->irs + 1;
    t->rcv_adv = t->rcv_nxt + NJ_TCP_SYN_WINDOW;
    nj__tcp_apply_syn_options(tcp, t, &h->opts, now);
    t->ecn_on = h->ecn;
    t->x->syn_at = h->sent_at;
    t->x->rexmit_at = now + t->x->rto;
    t->x->n_backoffs = h->n_waits;
    t->x->n_syns = h->n_sent;
    nj__tcb_set_state(tcp, t, NJ_TCP_SYN_RECEIVED);
    return t;
}

void nj__tcb_free_queues(struct nj_tcp *tcp, struct nj_tcb *t)
{
    if (!t->x)
        return;
    tcp->n_held -= t->x->rcvq.n_mbufs;
    nj__mbuf_queue_free(&t->x->sndq);
    nj__mbuf_queue_free(&t->x->rcvq);
    nj__reasm_free(t);
    nj__scoreboard_free(tcp, t->x);
    t->x->cursor[0].m = t->x->cursor[1].m = NULL;
    t->x->sndq_head_off = 0;
}

void nj__tcb_free(struct nj_tcp *tcp, struct nj_tcb *t)
{
    if (t->x)
        nj_pool_put(&tcp->xfers, t->x);
    nj_pool_put(&tcp->tcbs, t);
}

static void release_block(struct nj_tcp *tcp, struct nj_tcb *t)
{
    if (t->x)
        nj_list_del(&t->x->ready);
    nj__tcb_free(tcp, t);
}

/* Enter CLOSED and free timers, lists and queues. The caller handles the flow table's entry. */
static void deactivate(struct nj_tcp *tcp, struct nj_tcb *t)
{
    nj__tcb_set_state(tcp, t, NJ_TCP_CLOSED);
    nj_timer_disarm(&tcp->wheel, &t->timer);
    if (t->x)
        nj_list_del(&t->x->pending);
    nj__tcb_free_queues(tcp, t);
    tcp->n_orphans -= t->is_orphan;
}

void nj__tcb_end(struct nj_tcp *tcp, struct nj_tcb *t)
{
    nj_flow_remove(&tcp->flows, &t->flow);
    deactivate(tcp, t);
    if (t->is_orphan || (!t->user && !(t->events & NJ_TCP_EV_OPENED)))
        release_block(tcp, t); /* no user knows this block */
    else
        nj_tcp_note_ready(tcp, t, NJ_TCP_EV_DEAD);
}

void nj__tcb_enter_time_wait(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    nj__tcb_set_state(tcp, t, NJ_TCP_TIME_WAIT);
    t->x->rexmit_at = t->x->pto_at = t->x->reo_at = t->x->delack_at = NJ_NEVER;
    t->x->close_at = now + tcp->cfg.time_wait;
}

bool nj__tcb_try_time_wait_minisock(struct nj_tcp *tcp, struct nj_tcb *t, nj_ns now)
{
    if (t->state != NJ_TCP_TIME_WAIT || !t->is_orphan || t->ack_now)
        return false;
    nj_count(tcp->cfg.counters, NJ_C_tcp_closed);
    nj__time_wait_from_tcb(tcp, t, now);
    deactivate(tcp, t);
    release_block(tcp, t);
    return true;
}

void nj__tcb_assert_valid(const struct nj_tcb *t)
{
    const struct nj_xfer *x = t->x;

    if (!x)
        return;
    NJ_ASSERT(nj_seq_le(t->snd_una, t->snd_nxt));
    if (t->state >= NJ_TCP_ESTABLISHED)
        NJ_ASSERT(x->n_flight + x->n_sacked + x->n_lost == t->snd_nxt - t->snd_una);
    NJ_ASSERT(x->sndq.n_bytes > 0 || x->sndq.head == NULL);
    NJ_ASSERT((x->sndq.head == NULL) == (x->sndq.tail == NULL));
    NJ_ASSERT(x->sndq.n_bytes <= NJ_SENDQ_BYTES_MAX + UINT16_MAX);
    NJ_ASSERT((x->reasm == NULL) == (x->reasm_bytes == 0));
    if (t->state != NJ_TCP_SYN_SENT)
        NJ_ASSERT(nj_seq_le(t->rcv_nxt - 1, t->rcv_adv)); /* a FIN may be beyond the edge */
    if (t->state >= NJ_TCP_ESTABLISHED)
        NJ_ASSERT(t->cwnd >= 1 && t->snd_mss > 0);
    (void)x;
}
