/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/tcp_probe.h"

#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include "tcp/cc/congestion.h"

void probe_set_user(struct nj_tcb *t, void *user)
{
    t->user = user;
}

void *probe_user(const struct nj_tcb *t)
{
    return t->user;
}

const struct nj_tuple *probe_tuple(const struct nj_tcb *t)
{
    return &t->flow.tuple;
}

bool probe_in_syn_sent(const struct nj_tcb *t)
{
    return t->state == NJ_TCP_SYN_SENT;
}

/* An idle connection has no struct nj_xfer: nothing is queued, nothing in flight. */
static const struct nj_xfer *xfer(const struct nj_tcb *t)
{
    static const struct nj_xfer idle;
    return t->x ? t->x : &idle;
}

uint32_t probe_unread(const struct nj_tcb *t)
{
    return xfer(t)->rcvq.n_bytes;
}

uint32_t probe_unacked_bytes(const struct nj_tcb *t)
{
    return xfer(t)->sndq.n_bytes;
}

uint32_t probe_mss(const struct nj_tcb *t)
{
    return t->snd_mss;
}

/* The kernel's numbers for the states of RFC 9293. */
static uint8_t linux_state(const struct nj_tcb *t)
{
    static const uint8_t number[] = {
        [NJ_TCP_CLOSED] = 7,      [NJ_TCP_SYN_SENT] = 2,   [NJ_TCP_SYN_RECEIVED] = 3,
        [NJ_TCP_ESTABLISHED] = 1, [NJ_TCP_FIN_WAIT_1] = 4, [NJ_TCP_FIN_WAIT_2] = 5,
        [NJ_TCP_CLOSE_WAIT] = 8,  [NJ_TCP_CLOSING] = 11,   [NJ_TCP_LAST_ACK] = 9,
        [NJ_TCP_TIME_WAIT] = 6,
    };
    return number[t->state];
}

/* The kernel counts windows in segments, we in bytes. */
static uint32_t segments(const struct nj_tcb *t, uint32_t n_bytes)
{
    return t->snd_mss ? (n_bytes + t->snd_mss - 1) / t->snd_mss : 0;
}

/* Open, disorder, CWR, recovery, loss: 0, 1, 2, 3, 4. */
static uint8_t ca_state(const struct nj_xfer *x)
{
    static const uint8_t number[] = {
        [NJ_CA_OPEN] = 0, [NJ_CA_CWR] = 2, [NJ_CA_RECOVERY] = 3, [NJ_CA_LOSS] = 4};
    return x->ca == NJ_CA_OPEN && (x->dupacks || x->n_sacked) ? 1 : number[x->ca];
}

void probe_tcp_info(const struct nj_tcb *t, struct tcp_info *i)
{
    const struct nj_xfer *x = xfer(t);
    uint32_t queued = x->sndq.n_bytes, sent = nj_tcb_flight(t);

    memset(i, 0, sizeof *i);
    i->tcpi_state = linux_state(t);
    i->tcpi_ca_state = ca_state(x);
    i->tcpi_retransmits = i->tcpi_backoff = x->n_backoffs;
    i->tcpi_options =
        (uint8_t)((t->ts_on ? TCPI_OPT_TIMESTAMPS : 0) | (t->sack_on ? TCPI_OPT_SACK : 0) |
                  (t->rcv_wscale ? TCPI_OPT_WSCALE : 0) | (t->ecn_on ? TCPI_OPT_ECN : 0));
    i->tcpi_snd_wscale = t->snd_wscale;
    i->tcpi_rcv_wscale = t->rcv_wscale;
    i->tcpi_rto = (uint32_t)(x->rto / NJ_US);
    i->tcpi_snd_mss = t->snd_mss;
    i->tcpi_unacked = segments(t, sent);
    i->tcpi_sacked = segments(t, x->n_sacked);
    i->tcpi_lost = segments(t, x->n_lost);
    i->tcpi_rtt = t->srtt_us;
    i->tcpi_rttvar = t->rttvar_us;
    i->tcpi_min_rtt = t->min_rtt_us;
    i->tcpi_snd_cwnd = t->snd_mss ? t->cwnd / t->snd_mss : 0;
    i->tcpi_snd_ssthresh = t->snd_mss ? t->ssthresh / t->snd_mss : 0;
    i->tcpi_notsent_bytes = sent < queued ? queued - sent : 0;
}

void probe_unlisten(struct nj_tcp *tcp, uint16_t port)
{
    struct nj_listeners *l = &tcp->listeners;

    for (uint32_t i = 0; i < l->n; i++) {
        if (l->at[i].port == port) {
            l->at[i] = l->at[--l->n];
            return;
        }
    }
}

bool probe_configure(struct nj_tcp_config *c, const char *name, const char *value)
{
    uint32_t n = (uint32_t)strtoul(value, NULL, 0);

    if (strcmp(name, "conns") == 0)
        c->conns_max = n;
    else if (strcmp(name, "half_open") == 0)
        c->half_open_max = n;
    else if (strcmp(name, "held") == 0)
        c->held_max = n;
    else if (strcmp(name, "mtu") == 0)
        c->mtu = (uint16_t)n;
    else if (strcmp(name, "time_wait_ms") == 0)
        c->time_wait = n * NJ_MS;
    else if (strcmp(name, "user_timeout_ms") == 0)
        c->user_timeout = n * NJ_MS;
    else if (strcmp(name, "keepalive_ms") == 0)
        c->keepalive = n * NJ_MS;
    else if (strcmp(name, "ecn") == 0)
        c->ecn = n != 0;
    else if (strcmp(name, "cc") == 0 && strcmp(value, nj_cc_cubic.name) == 0)
        c->cc = &nj_cc_cubic;
    else if (strcmp(name, "cc") == 0 && strcmp(value, nj_cc_newreno.name) == 0)
        c->cc = &nj_cc_newreno;
    else
        return false;
    return true;
}

/* The user timeout of lib/tcp is that of all connections, of which a script has one. lib/tcp has no
 * Nagle algorithm, so TCP_NODELAY is always set. */
bool probe_set_option(struct nj_tcp *tcp, struct nj_tcb *t, int level, int name, int value,
                      nj_ns now)
{
    (void)now;
    if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT && value >= 0 && t) {
        tcp->cfg.user_timeout = (nj_ns)value * NJ_MS;
        return true;
    }
    return level == IPPROTO_TCP && name == TCP_NODELAY && value != 0;
}
