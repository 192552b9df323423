/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An attacker that knows the four-tuple of a connection and injects segments in the name of the
 * peer. RFC 9293 and RFC 5961 accept none of them, so none may change anything.
 */
#include "tcp_sim.h"

/* Limit of forged events per seed. */
#define FORGED_MAX 3000u

enum kind {
    RST_IN_WINDOW, /* but not at its edge */
    RST_OUTSIDE,
    SYN_ANYWHERE,
    TEXT_OUTSIDE,
    TEXT_WRONG_ACK, /* in the window, but acknowledges unsent data */
    TEXT_OLD_ACK,   /* ... or data acknowledged long before, or what was never sent */
    TEXT_OLD,       /* data received before, with other bytes */
    TEXT_NO_TS,     /* without the negotiated timestamp: as TEXT_OUTSIDE or TEXT_WRONG_ACK */
    TEXT_OLD_TS,    /* in the window, with an old timestamp */
    ACK_WRONG,
    NO_FLAGS,
    N_KINDS,
};

struct forged {
    uint32_t seq, ack, n_data, ts_val;
    uint8_t flags;
    bool ts;
};

static uint8_t *put_tcp(uint8_t *t, uint16_t sport, uint16_t dport, const struct forged *g,
                        struct nj_prng *p)
{
    uint32_t hdr = SIM_TCP_BYTES + (g->ts ? 12 : 0);

    nj_sim_put16(t, sport);
    nj_sim_put16(t + 2, dport);
    nj_sim_put32(t + 4, g->seq);
    nj_sim_put32(t + 8, g->ack);
    t[12] = (uint8_t)(hdr / 4 << 4);
    t[13] = g->flags;
    nj_sim_put16(t + 14, (uint16_t)nj_prng_next(p));
    nj_sim_put16(t + 18, 0);
    if (g->ts) {
        t[20] = t[21] = 1;
        t[22] = 8;
        t[23] = 10;
        nj_sim_put32(t + 24, g->ts_val);
        nj_sim_put32(t + 28, (uint32_t)nj_prng_next(p));
    }
    for (uint32_t i = 0; i < g->n_data; i++)
        t[hdr + i] = (uint8_t)nj_prng_next(p);
    return t + hdr + g->n_data;
}

/* Writes the headers below TCP for a frame to `to`; returns the position of TCP. */
static uint8_t *put_below(uint8_t *frame, const struct tsim_host *to, const struct nj_addr *src)
{
    uint8_t *ip = frame + SIM_ETH_BYTES;
    bool v6 = to->sim->mix.v6;

    memset(frame, 0, SIM_ETH_BYTES + 40);
    memcpy(frame, to->iface.mac.addr_bytes, 6);
    memcpy(frame + 6, to->sim->host[!to->index].iface.mac.addr_bytes, 6);
    nj_sim_put16(frame + 12, v6 ? 0x86dd : 0x0800);
    ip[v6 ? 6 : 9] = 6;
    ip[v6 ? 7 : 8] = 64;
    ip[0] = v6 ? 0x60 : 0x45;
    memcpy(ip + (v6 ? 8 : 12), src->b + (v6 ? 0 : 12), v6 ? 16 : 4);
    memcpy(ip + (v6 ? 24 : 16), to->ip.b + (v6 ? 0 : 12), v6 ? 16 : 4);
    return ip + (v6 ? 40 : 20);
}

static void send(struct tsim_host *to, const struct nj_addr *src, uint16_t sport, uint16_t dport,
                 const struct forged *g)
{
    uint8_t frame[SIM_FRAME_MAX];
    uint8_t *end = put_tcp(put_below(frame, to, src), sport, dport, g, &to->sim->malice);

    nj_sim_raw_seal(frame, (uint32_t)(end - frame));
    nj_tsim_host_inject(to, frame, (uint32_t)(end - frame));
}

/* A sequence number outside the receive window: beyond it, or far before. */
static uint32_t outside(struct nj_prng *p, const struct tsim_look *l, uint32_t n)
{
    uint32_t far = 1 + nj_prng_below(p, nj_prng_below(p, 2) ? 100 : 1u << 30);
    return nj_prng_below(p, 2) ? l->rcv_nxt + l->rcv_wnd + far : l->rcv_nxt - n - far;
}

static uint32_t inside(struct nj_prng *p, const struct tsim_look *l)
{
    return l->rcv_nxt + nj_prng_below(p, l->rcv_wnd);
}

/* Makes a segment of this kind. False if the connection's state does not allow one. `iss`: the
 * initial number of the attacked side. */
static bool make(struct nj_prng *p, enum kind kind, const struct tsim_look *l, uint32_t iss,
                 struct forged *g)
{
    *g = (struct forged){.flags = NJ_TCP_ACK,
                         .ack = l->snd_una,
                         .seq = l->rcv_nxt,
                         .ts = l->ts_on,
                         .ts_val = l->ts_recent,
                         .n_data = 1 + nj_prng_below(p, 200)};
    bool text = kind >= TEXT_OUTSIDE && kind <= TEXT_OLD_TS;
    if (text && nj_prng_below(p, 4) == 0)
        g->flags |= NJ_TCP_FIN;
    if (!text)
        g->n_data = 0;
    if (kind != RST_OUTSIDE && kind != TEXT_OUTSIDE && kind != TEXT_OLD && l->rcv_wnd < 2)
        return false;
    switch (kind) {
    case RST_IN_WINDOW:
        g->flags = NJ_TCP_RST | (nj_prng_below(p, 2) ? NJ_TCP_ACK : 0);
        g->seq += 1 + nj_prng_below(p, l->rcv_wnd - 1);
        return true;
    case RST_OUTSIDE:
        g->flags = NJ_TCP_RST;
        g->seq = outside(p, l, 1);
        return true;
    case SYN_ANYWHERE:
        g->flags = NJ_TCP_SYN | (nj_prng_below(p, 2) ? NJ_TCP_ACK : 0);
        g->seq = nj_prng_below(p, 2) ? inside(p, l) : outside(p, l, 1);
        return true;
    case TEXT_OUTSIDE:
        g->seq = outside(p, l, g->n_data + 1);
        return true;
    case TEXT_WRONG_ACK:
        g->seq = inside(p, l);
        g->ack = l->snd_max + 1 + nj_prng_below(p, 1u << 30);
        return true;
    case TEXT_OLD_ACK:
        g->seq = inside(p, l);
        g->ack = nj_seq_max(iss + 1, l->snd_una - l->snd_wnd_max) - 1 - nj_prng_below(p, 1u << 30);
        return true;
    case TEXT_OLD:
        g->seq -= g->n_data + 1 + nj_prng_below(p, 1000);
        return true;
    case TEXT_NO_TS:
        g->ts = false;
        if (nj_prng_below(p, 2))
            g->seq = outside(p, l, g->n_data + 1);
        else
            g->ack = l->snd_max + 1 + nj_prng_below(p, 1u << 30);
        return l->ts_on;
    case TEXT_OLD_TS:
        g->ts_val -= 1 + nj_prng_below(p, 1u << 30);
        return l->ts_on;
    case ACK_WRONG:
        g->ack = l->snd_max + 1 + nj_prng_below(p, 1u << 30);
        return true;
    case NO_FLAGS:
        g->flags = nj_prng_below(p, 2) ? 0 : NJ_TCP_URG | NJ_TCP_PSH;
        return true;
    case N_KINDS:
        break;
    }
    return false;
}

static bool same(const struct tsim_look *a, const struct tsim_look *b)
{
    return a->state == b->state && a->snd_una == b->snd_una && a->rcv_nxt == b->rcv_nxt &&
           a->cwnd == b->cwnd && a->snd_max == b->snd_max;
}

static void forge_for(struct tsim_side *s)
{
    struct tsim *sim = s->flow->sim;
    struct tsim_host *h = &sim->host[s->host], *peer = &sim->host[!s->host];
    struct tsim_look before = nj_tsim_look(s->tcb), after;
    enum kind kind = (enum kind)nj_prng_below(&sim->malice, N_KINDS);
    struct forged g;

    if (before.state < NJ_TCP_ESTABLISHED || before.state == NJ_TCP_TIME_WAIT ||
        !make(&sim->malice, kind, &before, s->flow->track[s->host].iss, &g))
        return;
    send(h, &peer->ip, s->flow->port[!s->host], s->flow->port[s->host], &g);
    after = nj_tsim_look(s->tcb);
    if (!same(&before, &after))
        nj_tsim_fail(sim, "flow %u host %u: a forged segment of kind %u was obeyed", s->flow->index,
                     s->host, kind);
}

static void again(struct tsim *sim, nj_ns every, enum tsim_event event)
{
    nj_ns at = sim->now + 1 + nj_prng_next(&sim->malice) % (2 * every);

    if (sim->n_forged < FORGED_MAX && at < sim->mix.calm_at)
        nj_sim_agenda_add(&sim->agenda, at, event, NULL);
}

void nj_tsim_forger_begin(struct tsim *sim)
{
    if (sim->mix.attack_every)
        again(sim, sim->mix.attack_every, TSIM_FORGE);
    if (sim->mix.flood_every)
        again(sim, sim->mix.flood_every, TSIM_FLOOD);
}

void nj_tsim_forge(struct tsim *sim)
{
    struct tsim_flow *f = &sim->flow[nj_prng_below(&sim->malice, sim->n_flows)];
    struct tsim_side *s = &f->side[nj_prng_below(&sim->malice, 2)];

    if (s->state == TSIM_OPEN && !s->aborted)
        forge_for(s);
    for (uint32_t i = 0; i < sim->n_flows; i++)
        if (!nj_tsim_flow_done(&sim->flow[i])) {
            again(sim, sim->mix.attack_every, TSIM_FORGE);
            return;
        }
}

void nj_tsim_flood(struct tsim *sim)
{
    struct nj_prng *p = &sim->malice;
    struct nj_addr src = sim->host[0].ip;
    struct forged g = {.flags = NJ_TCP_SYN, .seq = (uint32_t)nj_prng_next(p)};

    src.b[15] = (uint8_t)(3 + nj_prng_below(p, 250)); /* unused addresses */
    for (uint32_t n = 1 + nj_prng_below(p, 20); n > 0; n--)
        send(&sim->host[1], &src, (uint16_t)(1 + nj_prng_below(p, 65535)), TSIM_LISTEN_PORT, &g);
    again(sim, sim->mix.flood_every, TSIM_FLOOD);
}
