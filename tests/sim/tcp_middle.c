/* SPDX-License-Identifier: BSD-3-Clause */
/* The path between the hosts: changes by middleboxes and bad peers, then the channel. */
#include <netinet/in.h>

#include "base/assert.h"
#include "tcp_sim.h"

#define PIECES_MAX 16u /* of a split segment, or of a divided ACK */

/* --- sending ------------------------------------------------------------------------------- */

static void mark_ce(uint8_t *frame, uint32_t n_bytes, const struct sim_raw *r)
{
    if (r->ecn == NJ_ECN_NOT_ECT)
        return;
    if (r->v6)
        frame[r->ip + 1] |= NJ_ECN_CE << 4;
    else
        frame[r->ip + 1] |= NJ_ECN_CE;
    nj_sim_raw_seal(frame, n_bytes);
}

static void launch(struct tsim *sim, unsigned from, uint8_t *frame, uint32_t n_bytes)
{
    struct sim_passage p;
    struct sim_raw r;

    nj_sim_channel_pass(&sim->channel, from, n_bytes, sim->now, sim->calm, &p);
    if (p.at != NJ_NEVER) {
        if (p.mark && nj_sim_raw_parse(frame, n_bytes, &r))
            mark_ce(frame, n_bytes, &r);
        nj_sim_agenda_add(&sim->agenda, p.at, from ? TSIM_TO_0 : TSIM_TO_1,
                          nj_sim_frame_new(frame, &p));
    }
    nj_sim_record_frame(&sim->record, sim->now, from, frame, n_bytes, p.fate);
}

static void put(struct tsim *sim, unsigned from, uint8_t *frame, uint32_t n_bytes)
{
    sim->channel.stats.sent++;
    launch(sim, from, frame, n_bytes);
    if (nj_sim_channel_repeats(&sim->channel, from, sim->calm))
        launch(sim, from, frame, n_bytes);
}

/* The router sends the supported size, and quotes the packet. */
static void too_big(struct tsim *sim, unsigned from, const uint8_t *frame)
{
    uint8_t icmp[SIM_TOO_BIG_MAX];
    uint32_t n = nj_sim_raw_too_big(frame, sim->mix.path_mtu, icmp);
    struct sim_passage p;

    nj_sim_channel_pass(&sim->channel, !from, n, sim->now, sim->calm, &p);
    if (p.at != NJ_NEVER)
        nj_sim_agenda_add(&sim->agenda, p.at, from ? TSIM_TO_1 : TSIM_TO_0,
                          nj_sim_frame_new(icmp, &p));
    nj_sim_record_frame(&sim->record, sim->now, !from, icmp, n, p.fate);
}

/* --- middleboxes --------------------------------------------------------------------------- */

static void erase(uint8_t *frame, uint32_t at)
{
    if (at)
        memset(frame + at, 1, frame[at + 1]); /* no-operation */
}

static void rewrite_syn(const struct tsim_mix *mix, uint8_t *frame, uint32_t n_bytes,
                        const struct sim_raw *r)
{
    struct sim_raw_opts o;

    nj_sim_raw_opts(frame, r, &o);
    if (mix->no_ts)
        erase(frame, o.ts_at);
    if (mix->no_wscale)
        erase(frame, o.wscale_at);
    if (mix->no_sack)
        erase(frame, o.sack_ok_at);
    if (mix->mss_clamp && o.mss_at && mix->mss_clamp < o.mss)
        nj_sim_put16(frame + o.mss_at + 2, mix->mss_clamp);
    nj_sim_raw_seal(frame, n_bytes);
}

/* --- bad peers ----------------------------------------------------------------------------- */

/* Makes the clock of one host jump permanently. */
static void jump(struct tsim *sim, unsigned from, uint8_t *frame, uint32_t n_bytes,
                 const struct sim_raw *r)
{
    struct sim_raw_opts o;

    nj_sim_raw_opts(frame, r, &o);
    if (!o.ts_at)
        return;
    if (from == sim->mix.evil_host)
        nj_sim_put32(frame + o.ts_at + 2, o.ts_val + sim->mix.ts_jump);
    else
        nj_sim_put32(frame + o.ts_at + 6, o.ts_ecr - sim->mix.ts_jump);
    nj_sim_raw_seal(frame, n_bytes);
}

/* A number near a significant one, `una` or `max`, or any number. */
static uint32_t number_near(struct nj_prng *p, uint32_t una, uint32_t max)
{
    switch (nj_prng_below(p, 5)) {
    case 0:
        return (uint32_t)nj_prng_next(p);
    case 1:
        return una - nj_prng_below(p, 5000);
    case 2:
        return max + nj_prng_below(p, 5000);
    default:
        return una + nj_prng_below(p, max - una + 1);
    }
}

/* Adds SACK blocks of any form to an ACK without any. Returns the new length of the frame. */
static uint32_t lie_sack(struct tsim *sim, const struct tsim_flow *f, unsigned from, uint8_t *frame,
                         uint32_t n_bytes, const struct sim_raw *r)
{
    const struct tsim_track *k = &f->track[!from];
    struct nj_prng *p = &sim->malice;
    struct sim_raw_opts o;
    uint32_t room = 40 - (r->data - r->opts), most = room < 4 ? 0 : (room - 4) / 8;

    nj_sim_raw_opts(frame, r, &o);
    if (o.sack_at || r->n_data || most == 0 || (r->flags & NJ_TCP_SYN))
        return n_bytes;
    uint32_t n = 1 + nj_prng_below(p, most);
    uint8_t *opt = frame + r->data;
    opt[0] = opt[1] = 1;
    opt[2] = 5;
    opt[3] = (uint8_t)(2 + 8 * n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = number_near(p, k->una, k->max);
        uint32_t end = nj_prng_below(p, 3) ? number_near(p, first, k->max) : first + 1;
        nj_sim_put32(opt + 4 + 8 * i, first);
        nj_sim_put32(opt + 8 + 8 * i, end);
    }
    frame[r->tcp + 12] = (uint8_t)((r->data - r->tcp + 4 + 8 * n) / 4 << 4);
    nj_sim_raw_seal(frame, r->data + 4 + 8 * n);
    return r->data + 4 + 8 * n;
}

static void shrink(struct nj_prng *p, uint8_t *frame, uint32_t n_bytes, const struct sim_raw *r)
{
    uint32_t wnd = nj_prng_below(p, 3) ? nj_prng_below(p, r->wnd + 1u) : 0;

    nj_sim_put16(frame + r->tcp + 14, (uint16_t)wnd);
    nj_sim_raw_seal(frame, n_bytes);
}

static void optimistic(struct tsim *sim, const struct tsim_flow *f, unsigned from, uint8_t *frame,
                       uint32_t n_bytes, const struct sim_raw *r)
{
    uint32_t ahead = f->track[!from].max - r->ack;

    if ((int32_t)ahead > 0)
        nj_sim_put32(frame + r->tcp + 8, r->ack + nj_prng_below(&sim->malice, ahead + 1));
    nj_sim_raw_seal(frame, n_bytes);
}

/* Divides the ACK into many; the caller sends the last one. */
static void divide(struct tsim *sim, const struct tsim_flow *f, unsigned from, const uint8_t *frame,
                   uint32_t n_bytes, const struct sim_raw *r)
{
    uint32_t n = r->ack - f->wire_ack[from], step = n / PIECES_MAX + 1;
    uint8_t part[SIM_FRAME_MAX];

    if (n < 2 || n > 1u << 20 || r->n_data || (r->flags & (NJ_TCP_SYN | NJ_TCP_FIN)))
        return;
    for (uint32_t i = 1; i * step < n; i++) {
        memcpy(part, frame, n_bytes);
        nj_sim_put32(part + r->tcp + 8, f->wire_ack[from] + i * step);
        nj_sim_raw_seal(part, n_bytes);
        put(sim, from, part, n_bytes);
    }
}

/* Splits the segment; the first few pieces may be single bytes. */
static void crumble(struct tsim *sim, unsigned from, const uint8_t *frame, const struct sim_raw *r)
{
    uint32_t least = r->n_data / PIECES_MAX + 1;
    uint8_t part[SIM_FRAME_MAX];

    for (uint32_t done = 0, n; done < r->n_data; done += n) {
        bool tiny = done < PIECES_MAX && nj_prng_below(&sim->malice, 2);
        n = tiny ? 1 : least + nj_prng_below(&sim->malice, 2 * least);
        if (n > r->n_data - done)
            n = r->n_data - done;
        memcpy(part, frame, r->data);
        memcpy(part + r->data, frame + r->data + done, n);
        nj_sim_put32(part + r->tcp + 4, r->seq + done);
        if (done + n < r->n_data)
            part[r->tcp + 13] &= (uint8_t) ~(NJ_TCP_FIN | NJ_TCP_PSH);
        nj_sim_raw_seal(part, r->data + n);
        put(sim, from, part, r->data + n);
    }
}

/* True if the segment was sent in another form. */
static bool turn_bad(struct tsim *sim, const struct tsim_flow *f, unsigned from, uint8_t *frame,
                     uint32_t *n_bytes, struct sim_raw *r)
{
    struct nj_prng *p = &sim->malice;
    uint32_t evil = sim->mix.evil, chance = sim->mix.evil_chance;

    if ((evil & TSIM_SHRINK) && nj_sim_chance(p, chance))
        shrink(p, frame, *n_bytes, r);
    if ((evil & TSIM_OPTIMISTIC) && (r->flags & NJ_TCP_ACK) && nj_sim_chance(p, chance))
        optimistic(sim, f, from, frame, *n_bytes, r);
    if ((evil & TSIM_LIE_SACK) && nj_sim_chance(p, chance))
        *n_bytes = lie_sack(sim, f, from, frame, *n_bytes, r);
    NJ_CHECK(nj_sim_raw_parse(frame, *n_bytes, r));
    if ((evil & TSIM_DIVIDE) && nj_sim_chance(p, chance))
        divide(sim, f, from, frame, *n_bytes, r);
    if (!(evil & TSIM_CRUMBLE) || r->n_data < 2 || !nj_sim_chance(p, chance))
        return false;
    crumble(sim, from, frame, r);
    return true;
}

/* --- entry --------------------------------------------------------------------------------- */

/* Losses for the table of throughput. */
static bool lost_by_place(struct tsim *sim, const struct tsim_flow *f, const struct sim_raw *r,
                          bool fresh)
{
    uint32_t place = r->seq - f->track[1].iss - 1;
    uint64_t left = nj_tsim_total(f, 1) - place;
    struct nj_prng p = {.state = sim->seed << 32 | place};

    if (r->n_data == 0 || !fresh)
        return nj_sim_chance(&sim->malice, sim->mix.loss_by_place);
    return left <= (uint64_t)sim->mix.tail_drop * r->n_data ||
           nj_sim_chance(&p, sim->mix.loss_by_place);
}

void nj_tsim_middle(struct tsim *sim, unsigned from, uint8_t *frame, uint32_t n_bytes, bool fresh)
{
    const struct tsim_mix *mix = &sim->mix;
    struct sim_raw r;

    NJ_CHECK(nj_sim_raw_parse(frame, n_bytes, &r));
    struct tsim_flow *f = nj_tsim_find(sim, from, r.sport, r.dport);
    if (mix->path_mtu && n_bytes - SIM_ETH_BYTES > mix->path_mtu) {
        nj_sim_record_frame(&sim->record, sim->now, from, frame, n_bytes, "too big");
        if (mix->icmp)
            too_big(sim, from, frame);
        return;
    }
    if ((mix->loss_by_place || mix->tail_drop) && from == 1 && lost_by_place(sim, f, &r, fresh)) {
        nj_sim_record_frame(&sim->record, sim->now, from, frame, n_bytes, "lost");
        return;
    }
    if (r.flags & NJ_TCP_SYN)
        rewrite_syn(mix, frame, n_bytes, &r);
    if ((mix->evil & TSIM_TS_JUMP) && sim->now >= mix->ts_jump_at)
        jump(sim, from, frame, n_bytes, &r);
    bool bad = f && !sim->calm && from == mix->evil_host && mix->evil && !(r.flags & NJ_TCP_RST);
    if (!bad || !turn_bad(sim, f, from, frame, &n_bytes, &r))
        put(sim, from, frame, n_bytes);
    if (f)
        f->wire_ack[from] = r.ack;
}
