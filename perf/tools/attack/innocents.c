/* SPDX-License-Identifier: BSD-3-Clause */
#include "innocents.h"

#include <math.h>
#include <string.h>

#define HOST_FIRST     0xc6120300u /* 198.18.3.0 */
#define PORT           10000u
#define STEP_SENDS_MAX 4u

static double wait_until_next(struct innocents *v)
{
    double chance = ((double)(nj_prng_next(&v->prng) >> 11) + 1) / 9007199254740993.0;
    return -log(chance) / v->rate * (double)NJ_SEC;
}

bool innocents_connect(struct innocents *v, struct hosts *hosts, uint16_t port, const char *path,
                       double rate, nj_ns now)
{
    v->hosts = hosts;
    v->path = path;
    v->rate = rate;
    nj_prng_init(&v->prng, 1);
    for (uint32_t i = 0; i < INNOCENTS_MAX; i++) {
        struct innocent *c = &v->client[i];
        c->party.kind = PARTY_INNOCENT;
        c->all = v;
        c->tcb = hosts_connect(hosts, HOST_FIRST + i, PORT, port, now);
        if (!c->tcb)
            return false;
        c->tcb->user = &c->party;
    }
    return true;
}

bool innocents_are_open(const struct innocents *v)
{
    for (uint32_t i = 0; i < INNOCENTS_MAX; i++)
        if (!v->client[i].open)
            return false;
    return true;
}

void innocents_measure(struct innocents *v, nj_ns from, nj_ns to)
{
    memset(&v->latency, 0, sizeof v->latency);
    memset(&v->late, 0, sizeof v->late);
    v->n_asked = v->n_answered = v->n_full = v->n_stalled = 0;
    v->measured_from = from;
    v->measured_to = to;
}

bool innocents_are_measured(const struct innocents *v, nj_ns now)
{
    return now >= v->measured_to && v->n_answered == v->n_asked;
}

void innocents_stalled(struct innocents *v, nj_ns now)
{
    v->stalled_until = now;
}

static struct innocent *next_with_room(struct innocents *v)
{
    for (uint32_t i = 0; i < INNOCENTS_MAX; i++) {
        struct innocent *c = &v->client[v->next++ % INNOCENTS_MAX];
        if (c->open && h2_may_ask(&c->h2) && nj_tcp_send_room(c->tcb) >= H2_MESSAGE_BYTES)
            return c;
    }
    return NULL;
}

static bool is_measured(const struct innocents *v, nj_ns due)
{
    return due >= v->measured_from && due < v->measured_to;
}

/* The times when requests are sent carry a mark in their lowest bit: whether they are measured. */
static nj_ns marked(nj_ns at, bool measured)
{
    return (at & ~(nj_ns)1) | measured;
}

static void ask(struct innocents *v, struct innocent *c, nj_ns now)
{
    bool measured = is_measured(v, v->due);
    uint8_t frames[H2_MESSAGE_BYTES];
    uint32_t n_bytes = h2_ask(&c->h2, frames, v->path, marked(now, measured));

    v->broken |= !nj_tcp_send_copy(&v->hosts->tcp, c->tcb, frames, n_bytes);
    v->n_asked += measured;
    if (measured)
        fine_histogram_add(&v->late, now - v->due);
}

uint32_t innocents_step(struct innocents *v, nj_ns now)
{
    uint32_t n = 0;

    if (v->due == 0)
        v->due = now;
    while (v->due <= now && n < STEP_SENDS_MAX) {
        struct innocent *c = hosts_room(v->hosts) > 0 ? next_with_room(v) : NULL;
        if (c)
            ask(v, c, now);
        else
            v->n_full += is_measured(v, v->due);
        v->due += (nj_ns)wait_until_next(v);
        n++;
    }
    return n;
}

static void answered(void *ctx, nj_ns sent_at)
{
    struct innocents *v = ctx;

    if (!(sent_at & 1))
        return;
    v->n_answered++;
    if (sent_at < v->stalled_until)
        v->n_stalled++;
    else
        fine_histogram_add(&v->latency, v->now > sent_at ? v->now - sent_at : 0);
}

void innocents_event(struct innocents *v, struct innocent *c, uint8_t events, nj_ns now)
{
    uint8_t frames[H2_MESSAGE_BYTES];
    const uint8_t *data;
    uint32_t n;

    v->now = now;
    if (events & NJ_TCP_EV_DEAD) {
        nj_tcp_release(&v->hosts->tcp, c->tcb, now);
        c->tcb = NULL;
        v->broken = true;
        c->open = false;
        return;
    }
    if (events & NJ_TCP_EV_OPENED) {
        n = h2_begin(&c->h2, frames);
        v->broken |= !nj_tcp_send_copy(&v->hosts->tcp, c->tcb, frames, n);
        nj_tcp_set_ack_events(c->tcb, false);
        c->open = true;
    }
    while ((n = nj_tcp_recv_peek(c->tcb, &data)) > 0) {
        v->broken |= !h2_input(&c->h2, data, n, answered, v);
        nj_tcp_recv_take(&v->hosts->tcp, c->tcb, n);
    }
    n = h2_owed(&c->h2, frames);
    if (n > 0)
        v->broken |= !nj_tcp_send_copy(&v->hosts->tcp, c->tcb, frames, n);
    v->broken |= (events & NJ_TCP_EV_PEER_FIN) != 0;
}
