/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_track.h"

#include "tcp_sim.h"

/* --- sent segments ------------------------------------------------------------------------- */

static void law(struct tsim_flow *f, unsigned from, const char *what, uint32_t a, uint32_t b)
{
    nj_tsim_fail(f->sim, "flow %u host %u: %s (%u, %u)", f->index, from, what, a, b);
}

static void sent_syn(struct tsim_flow *f, unsigned from, const uint8_t *frame,
                     const struct sim_raw *r)
{
    struct tsim_track *k = &f->track[from];
    struct sim_raw_opts o;

    if (k->syn && k->iss == r->seq)
        return;
    /* After its end an old SYN of the peer may start a connection that never opens. */
    if (k->syn && f->side[from].state == TSIM_OPEN && !f->side[from].aborted)
        law(f, from, "another SYN in the middle", k->iss, r->seq);
    bool peer_syn = k->peer_syn, scales = k->peer_scales, sacks = k->peer_sacks;
    uint8_t shift = k->peer_shift;
    uint16_t mss = k->peer_mss;
    f->track[!from].peer_done |= k->fin;
    *k = (struct tsim_track){.again = k->syn,
                             .syn = true,
                             .iss = r->seq,
                             .max = r->seq + 1,
                             .una = r->seq,
                             .edge = r->seq + 1,
                             .peer_syn = peer_syn,
                             .peer_scales = scales,
                             .peer_sacks = sacks,
                             .peer_shift = shift,
                             .peer_mss = mss};
    nj_sim_raw_opts(frame, r, &o);
    k->offers_scale = o.wscale_at != 0;
    k->offers_sack = o.sack_ok_at != 0;
    k->shift = o.wscale;
}

static bool scaling(const struct tsim_track *k)
{
    return k->offers_scale && k->peer_scales;
}

/* ACK and right edge never decrease (RFC 9293 3.8.6.2.1: shrinking is SHLD-14). */
static void check_promises(struct tsim_flow *f, unsigned from, const struct sim_raw *r)
{
    struct tsim_track *k = &f->track[from];
    bool syn = r->flags & NJ_TCP_SYN;
    uint32_t edge = r->ack + ((uint32_t)r->wnd << (scaling(k) && !syn ? k->shift : 0));

    if (!(r->flags & NJ_TCP_ACK))
        return;
    if (k->acked_any && nj_seq_lt(r->ack, k->last_ack))
        law(f, from, "ACK goes back", k->last_ack, r->ack);
    /* TIME_WAIT advertises no window, also in reply to a SYN-ACK caused by an old SYN. */
    bool all_came = f->track[!from].fin || k->peer_done || f->side[from].peer_fin;
    if (k->acked_any && !all_came && nj_seq_lt(edge, k->told_edge))
        law(f, from, "the window's right edge moves back", k->told_edge, edge);
    const struct tsim_track *peer = &f->track[!from];
    if (peer->syn && !peer->again && nj_seq_lt(peer->max, r->ack))
        law(f, from, "ACK of data that was never sent", peer->max, r->ack);
    k->acked_any = true;
    k->last_ack = r->ack;
    k->told_edge = edge;
}

static bool right_bytes(const struct tsim_flow *f, unsigned from, uint32_t pos, const uint8_t *data,
                        uint32_t n)
{
    for (uint32_t done = 0; done < n;) {
        uint32_t part = n - done;
        const uint8_t *want = nj_tsim_bytes(f, from, pos + done, &part);
        if (memcmp(data + done, want, part) != 0)
            return false;
        done += part;
    }
    return true;
}

/* The text must equal what the application wrote, fit the peer's MSS and window, and not be
 * acknowledged already. */
static void check_text(struct tsim_flow *f, unsigned from, const uint8_t *frame,
                       const struct sim_raw *r)
{
    const struct tsim_track *k = &f->track[from];
    uint32_t pos = r->seq - k->iss - 1, end = r->seq + r->n_data;
    uint32_t mss = k->peer_mss > TSIM_MSS_FLOOR ? k->peer_mss : TSIM_MSS_FLOOR;

    if (pos + (uint64_t)r->n_data > f->side[from].sent)
        law(f, from, "sends more than was written", pos, r->n_data);
    else if (!right_bytes(f, from, pos, frame + r->data, r->n_data))
        law(f, from, "sends wrong bytes", pos, r->n_data);
    if (r->n_data + (r->data - r->opts) > mss)
        law(f, from, "segment longer than the peer's MSS", r->n_data, mss);
    /* One byte beyond the window is a probe (RFC 9293 3.8.6.1). */
    if (nj_seq_lt(k->edge + 1, end))
        law(f, from, "sends beyond the peer's window", k->edge, end);
}

static void check_fin(struct tsim_flow *f, unsigned from, const struct sim_raw *r)
{
    struct tsim_track *k = &f->track[from];
    uint32_t fin = r->seq + r->n_data, want = k->iss + 1 + (uint32_t)f->side[from].sent;

    if (!f->side[from].closed || fin != want)
        law(f, from, "FIN at the wrong place", want, fin);
    k->fin = true;
}

static void remember(struct tsim_track *k, const struct sim_raw *r, nj_ns now)
{
    struct tsim_send *s = &k->send[k->n_sends++ % TSIM_SENDS_MAX];
    *s = (struct tsim_send){r->seq, r->seq + r->n_data, now};
}

bool nj_tsim_track_sent(struct tsim_flow *f, unsigned from, const uint8_t *frame,
                        const struct sim_raw *r)
{
    struct tsim_track *k = &f->track[from];
    uint32_t end = r->seq + r->n_data + !!(r->flags & NJ_TCP_FIN);

    if (r->flags & NJ_TCP_RST)
        return false;
    if (r->flags & NJ_TCP_SYN)
        sent_syn(f, from, frame, r);
    if (!k->syn) {
        law(f, from, "a segment before the SYN", r->seq, r->flags);
        return false;
    }
    check_promises(f, from, r);
    if (r->flags & NJ_TCP_SYN)
        return false;
    uint32_t text_end = r->seq + r->n_data;
    bool fresh = r->n_data > 0 && nj_seq_lt(k->max, text_end);
    if (r->n_data > 0) {
        check_text(f, from, frame, r);
        if (fresh)
            nj_tsim_check_new_data(&f->side[from], text_end - k->max);
        else
            nj_tsim_check_resent(&f->side[from], r);
        remember(k, r, f->sim->now);
    }
    if (r->flags & NJ_TCP_FIN)
        check_fin(f, from, r);
    if (end != r->seq)
        k->max = nj_seq_max(k->max, end);
    return fresh;
}

/* --- delivered segments -------------------------------------------------------------------- */

static void syn_came(struct tsim_track *k, const uint8_t *frame, const struct sim_raw *r)
{
    struct sim_raw_opts o;

    nj_sim_raw_opts(frame, r, &o);
    k->peer_syn = true;
    k->peer_scales = o.wscale_at != 0;
    k->peer_shift = o.wscale < 14 ? o.wscale : 14;
    k->peer_sacks = o.sack_ok_at != 0;
    k->peer_mss = o.mss_at ? o.mss : 536;
}

/* Keeps the union of the blocks; adjacent blocks are merged. */
static void add_sacked(struct tsim_track *k, uint32_t first, uint32_t end)
{
    for (uint32_t i = 0; i < k->n_sacked;) {
        struct tsim_span *s = &k->sacked[i];
        if (nj_seq_le(first, s->end) && nj_seq_le(s->first, end)) {
            first = nj_seq_lt(s->first, first) ? s->first : first;
            end = nj_seq_max(s->end, end);
            *s = k->sacked[--k->n_sacked];
        } else if (nj_seq_le(s->end, k->una)) {
            *s = k->sacked[--k->n_sacked];
        } else {
            i++;
        }
    }
    if (k->n_sacked < TSIM_SACKS_MAX)
        k->sacked[k->n_sacked++] = (struct tsim_span){first, end};
}

static void sacks_came(struct tsim_track *k, const uint8_t *frame, const struct sim_raw *r)
{
    struct sim_raw_opts o;

    nj_sim_raw_opts(frame, r, &o);
    for (uint32_t i = 0; i < o.n_sack; i++) {
        uint32_t first = nj_sim_get32(frame + o.sack_at + 2 + 8 * i);
        uint32_t end = nj_sim_get32(frame + o.sack_at + 6 + 8 * i);
        if (nj_seq_lt(k->una, first) && nj_seq_lt(first, end) && nj_seq_le(end, k->max))
            add_sacked(k, first, end);
    }
}

void nj_tsim_track_came(struct tsim_flow *f, unsigned to, const uint8_t *frame,
                        const struct sim_raw *r)
{
    struct tsim_track *k = &f->track[to];
    bool syn = r->flags & NJ_TCP_SYN;

    if (r->flags & NJ_TCP_RST)
        return;
    if (syn)
        syn_came(k, frame, r);
    /* From an older connection of the same ports, or forged. */
    if (!k->syn || !(r->flags & NJ_TCP_ACK) || nj_seq_lt(r->ack, k->iss) ||
        nj_seq_lt(k->max, r->ack))
        return;
    uint32_t edge = r->ack + ((uint32_t)r->wnd << (scaling(k) && !syn ? k->peer_shift : 0));
    k->una = nj_seq_max(k->una, r->ack);
    k->edge = nj_seq_max(k->edge, edge);
    if (k->offers_sack && k->peer_sacks)
        sacks_came(k, frame, r);
}
