/* SPDX-License-Identifier: BSD-3-Clause */
/* The application at one end of a flow. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/body_source.h"
#include "tcp_sim.h"

/* A prime, so that bytes shifted by any round number differ. */
#define PATTERN_BYTES 1048573u

/* Time after which an end whose peer disappeared silently gives up. */
#define TIMEOUT      (30 * NJ_SEC)
/* If completion is not guaranteed, both ends give up this long after the last fault. */
#define LAST_TIMEOUT (60 * NJ_SEC)
/* Mbufs that an application leaves for segments: if all held unsent data, nothing could be sent.
 * It retries later. */
#define MBUFS_LEFT   100u
#define WRITE_RETRY  (5 * NJ_MS)

const uint8_t *nj_tsim_bytes(const struct tsim_flow *f, unsigned from, uint64_t pos, uint32_t *n)
{
    uint32_t off = (uint32_t)((f->salt[from] + pos) % PATTERN_BYTES);

    if (*n > PATTERN_BYTES - off)
        *n = PATTERN_BYTES - off;
    return f->sim->env->pattern + off;
}

uint8_t *nj_tsim_pattern_new(void)
{
    uint8_t *bytes = malloc(PATTERN_BYTES);
    struct nj_prng p;

    NJ_CHECK(bytes);
    nj_prng_init(&p, 1);
    for (uint32_t i = 0; i < PATTERN_BYTES; i++)
        bytes[i] = (uint8_t)nj_prng_next(&p);
    return bytes;
}

static struct tsim_side *other(const struct tsim_side *s)
{
    return &s->flow->side[!s->host];
}

static struct nj_tcp *tcp_of(const struct tsim_side *s)
{
    return &s->flow->sim->host[s->host].tcp;
}

static bool nothing_promised(const struct tsim *sim)
{
    return (sim->mix.evil & TSIM_OPTIMISTIC) || sim->mix.flood_every;
}

static bool has_all(const struct tsim_side *s)
{
    return s->got == nj_tsim_total(s->flow, !s->host);
}

static bool finished(const struct tsim_side *s)
{
    return s->closed && s->peer_fin;
}

/* May the connection end abnormally without a fault of TCP? */
static bool may_die(const struct tsim_side *s)
{
    const struct tsim_side *o = other(s);

    /* An echo from before the clock jump measures a round trip of a minute, and as long a
     * time-out. */
    bool jumped = s->flow->sim->mix.evil & TSIM_TS_JUMP;
    return nothing_promised(s->flow->sim) || jumped || s->aborted || o->aborted || o->died ||
           finished(s) || (o->leaves && o->state == TSIM_OVER);
}

static void over(struct tsim_side *s, bool died)
{
    struct tsim *sim = s->flow->sim;

    nj_tcp_release(tcp_of(s), s->tcb, sim->now);
    s->tcb = NULL;
    s->state = TSIM_OVER;
    s->over_at = sim->now;
    s->died = died && !finished(s);
    /* TIME_WAIT ended while a slow reader had unread data, which was freed. */
    bool cut = died && finished(s) && s->slow;
    if (finished(s) && !has_all(s) && !cut && !other(s)->aborted && !s->aborted &&
        !nothing_promised(sim))
        nj_tsim_fail(sim, "flow %u host %u ended with %lu of %lu bytes read", s->flow->index,
                     s->host, (unsigned long)s->got,
                     (unsigned long)nj_tsim_total(s->flow, !s->host));
    nj_tsim_log(sim, "flow %u host %u: %s, sent %lu got %lu", s->flow->index, s->host,
                died ? "dead" : "over", (unsigned long)s->sent, (unsigned long)s->got);
    if (died && !may_die(s))
        nj_tsim_fail(sim, "flow %u host %u died: sent %lu, got %lu of %lu", s->flow->index, s->host,
                     (unsigned long)s->sent, (unsigned long)s->got,
                     (unsigned long)nj_tsim_total(s->flow, !s->host));
}

static void give_up(struct tsim_side *s, const char *why)
{
    nj_tsim_log(s->flow->sim, "flow %u host %u: aborts, %s", s->flow->index, s->host, why);
    s->aborted = true;
    nj_tcp_abort(tcp_of(s), s->tcb, s->flow->sim->now);
}

/* --- reading ------------------------------------------------------------------------------- */

static bool right(const struct tsim_side *s, const uint8_t *data, uint32_t n)
{
    for (uint32_t done = 0; done < n;) {
        uint32_t part = n - done;
        const uint8_t *want = nj_tsim_bytes(s->flow, !s->host, s->got + done, &part);
        if (memcmp(data + done, want, part) != 0)
            return false;
        done += part;
    }
    return true;
}

static void maybe_stall(struct tsim_side *s)
{
    if (s->got < s->stall_after)
        return;
    s->stall_after = --s->n_stalls ? s->got + s->stall_gap : NJ_NEVER;
    s->stalled_until = s->flow->sim->now + s->stall_for + 1;
}

static void read_some(struct tsim_side *s)
{
    struct tsim *sim = s->flow->sim;
    const uint8_t *data;
    uint32_t n;

    while (!s->stalled_until && (n = nj_tcp_recv_peek(s->tcb, &data)) > 0) {
        n = n < s->sip ? n : s->sip;
        if (s->got + n > other(s)->sent || !right(s, data, n)) {
            nj_tsim_fail(sim, "flow %u host %u reads wrong bytes at %lu", s->flow->index, s->host,
                         (unsigned long)s->got);
            return;
        }
        nj_tcp_recv_take(tcp_of(s), s->tcb, n);
        s->got += n;
        if (s->got == nj_tsim_total(s->flow, !s->host))
            s->done_at = sim->now;
        maybe_stall(s);
    }
}

/* --- writing ------------------------------------------------------------------------------- */

/* Rounds that the received bytes allow to start. */
static uint32_t rounds_open(const struct tsim_side *s)
{
    uint64_t per_round = other(s)->per_round, rounds;

    if (!s->flow->lockstep || per_round == 0)
        return s->flow->n_rounds;
    rounds = s->got / per_round + (s->host == 0);
    return rounds < s->flow->n_rounds ? (uint32_t)rounds : s->flow->n_rounds;
}

/* Bytes that may have been written by now; starts the next round when it is due. */
static uint64_t allowed(struct tsim_side *s)
{
    uint64_t limit = s->n_rounds_begun * s->per_round;

    if (s->sent < limit || s->n_rounds_begun == rounds_open(s) || s->per_round == 0)
        return limit;
    s->n_rounds_begun++;
    s->write_at = s->think ? s->flow->sim->now + s->think : 0;
    return limit + s->per_round;
}

static bool queue(struct tsim_side *s, uint32_t n)
{
    const uint8_t *bytes = nj_tsim_bytes(s->flow, s->host, s->sent, &n);
    struct nj_slice slice = {.data = bytes, .n_bytes = n};

    bool scarce = rte_mempool_avail_count(s->flow->sim->host[s->host].tx_pool) < MBUFS_LEFT;
    bool ok = !scarce && (s->refer ? nj_tcp_send_refer(tcp_of(s), s->tcb, &slice)
                                   : nj_tcp_send_copy(tcp_of(s), s->tcb, bytes, n));
    if (!ok) {
        s->retry_at = s->flow->sim->now + WRITE_RETRY;
        return false;
    }
    s->sent += n;
    return true;
}

static void write_some(struct tsim_side *s)
{
    uint64_t limit;
    uint32_t room;

    while (!s->closed && (limit = allowed(s)) > s->sent && !s->write_at && !s->retry_at &&
           (room = nj_tcp_send_room(s->tcb)) > 0) {
        uint64_t n = limit - s->sent;
        n = n < room ? n : room;
        if (!queue(s, (uint32_t)(n < s->piece ? n : s->piece)))
            return;
    }
}

/* --- life ---------------------------------------------------------------------------------- */

/* After the peer's FIN, the last write waits until all was read: the connection may end right
 * after it, and unread data would be freed. */
static void maybe_close(struct tsim_side *s)
{
    if (s->closed || s->sent < nj_tsim_total(s->flow, s->host) || (s->polite && !s->peer_fin) ||
        (s->peer_fin && !has_all(s)))
        return;
    nj_tsim_log(s->flow->sim, "flow %u host %u: closes", s->flow->index, s->host);
    s->closed = true;
    nj_tcp_close(tcp_of(s), s->tcb, s->flow->sim->now);
}

static void check_end(struct tsim_side *s)
{
    const uint8_t *data;

    if (s->peer_fin && nj_tcp_recv_peek(s->tcb, &data) == 0 && (!has_all(s) || !other(s)->closed) &&
        !nothing_promised(s->flow->sim))
        nj_tsim_fail(s->flow->sim, "flow %u host %u: FIN after %lu of %lu bytes", s->flow->index,
                     s->host, (unsigned long)s->got,
                     (unsigned long)nj_tsim_total(s->flow, !s->host));
}

static void go_on(struct tsim_side *s)
{
    if (s->state != TSIM_OPEN || s->aborted)
        return;
    read_some(s);
    if (s->got + s->sent >= s->abort_after) {
        give_up(s, "as planned");
        return;
    }
    check_end(s);
    write_some(s);
    maybe_close(s);
    if (s->closed && has_all(s) && (s->peer_fin || s->leaves))
        over(s, false);
}

static void open_now(struct tsim_side *s)
{
    struct tsim_flow *f = s->flow;
    struct tsim *sim = f->sim;
    struct nj_tuple tuple = {
        .local = sim->host[s->host].ip,
        .remote = sim->host[!s->host].ip,
        .lport = f->port[s->host],
        .rport = f->port[!s->host],
    };

    s->tcb = nj_tcp_connect(tcp_of(s), &tuple, sim->now);
    if (!s->tcb) {
        s->start_at = sim->now + 100 * NJ_MS;
        return;
    }
    nj_tsim_set_user(s->tcb, s);
    s->state = TSIM_OPENING;
}

/* Time at which it gives up. */
static nj_ns gives_up_at(const struct tsim_side *s)
{
    const struct tsim *sim = s->flow->sim;
    const struct tsim_side *o = other(s);
    bool alone = o->state == TSIM_OVER && (o->aborted || o->died || o->leaves);
    nj_ns at = alone ? o->over_at + TIMEOUT + s->stall_for * (s->n_stalls + 1) : NJ_NEVER;

    if (nothing_promised(sim) && sim->mix.calm_at + LAST_TIMEOUT < at)
        at = sim->mix.calm_at + LAST_TIMEOUT;
    return at;
}

nj_ns nj_tsim_side_next(const struct tsim_side *s)
{
    if (s->state == TSIM_WAITING)
        return s->start_at;
    if (s->state != TSIM_OPENING && s->state != TSIM_OPEN)
        return NJ_NEVER;
    nj_ns next = s->aborted ? NJ_NEVER : gives_up_at(s);
    const nj_ns at[] = {s->write_at, s->stalled_until, s->retry_at};
    for (unsigned i = 0; i < 3; i++)
        if (at[i] && at[i] < next)
            next = at[i];
    return next;
}

static void clear_if_past(nj_ns *at, nj_ns now)
{
    if (*at <= now)
        *at = 0;
}

void nj_tsim_side_alarm(struct tsim_side *s)
{
    nj_ns now = s->flow->sim->now;

    if (s->state == TSIM_WAITING) {
        open_now(s);
        return;
    }
    clear_if_past(&s->write_at, now);
    clear_if_past(&s->stalled_until, now);
    clear_if_past(&s->retry_at, now);
    if (nj_tsim_look(s->tcb).state == NJ_TCP_CLOSED)
        return; /* EV_DEAD follows */
    if (!s->aborted && gives_up_at(s) <= now)
        give_up(s, "the peer is gone");
    else
        go_on(s);
}

/* The side that a new peer connection belongs to. NULL: none, an old SYN of a finished flow
 * arrived. */
static struct tsim_side *accept_from(struct tsim *sim, unsigned host, struct nj_tcb *tcb)
{
    const struct nj_tuple *t = nj_tsim_tuple(tcb);
    struct tsim_flow *f = nj_tsim_find(sim, host, t->lport, t->rport);

    if (!f || f->side[host].state != TSIM_ABSENT) {
        nj_tsim_log(sim, "host %u: an unknown peer connected", host);
        nj_tcp_release(&sim->host[host].tcp, tcb, sim->now);
        return NULL;
    }
    nj_tsim_set_user(tcb, &f->side[host]);
    f->side[host].tcb = tcb;
    return &f->side[host];
}

void nj_tsim_turn(struct tsim *sim, unsigned host, struct nj_tcb *tcb, uint8_t events)
{
    struct tsim_side *s = nj_tsim_user(tcb);

    if (!s && !(s = accept_from(sim, host, tcb)))
        return;
    NJ_CHECK(s->tcb == tcb && s->host == host);
    if (events & NJ_TCP_EV_OPENED) {
        nj_tsim_log(sim, "flow %u host %u: open", s->flow->index, host);
        s->state = TSIM_OPEN;
        s->opened_at = sim->now;
    }
    if (events & NJ_TCP_EV_PEER_FIN)
        s->peer_fin = true;
    if (events & NJ_TCP_EV_DEAD)
        over(s, true);
    else
        go_on(s);
}

bool nj_tsim_flow_done(const struct tsim_flow *f)
{
    return f->side[0].state == TSIM_OVER &&
           (f->side[1].state == TSIM_OVER || f->side[1].state == TSIM_ABSENT);
}

void nj_tsim_flow_check(const struct tsim_flow *f)
{
    const struct tsim_side *a = &f->side[0], *b = &f->side[1];

    if (nothing_promised(f->sim) || a->aborted || b->aborted || a->died || b->died)
        return; /* excused when it happened, or reported by then */
    for (unsigned h = 0; h < 2; h++) {
        if (f->side[h].state != TSIM_OVER)
            nj_tsim_fail(f->sim, "flow %u never came to host %u", f->index, h);
    }
}
