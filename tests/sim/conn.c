/* SPDX-License-Identifier: BSD-3-Clause */
/* A client connection on TCP (RFC 9293): its life from open to close. */
#include "conn.h"

#include "base/assert.h"
#include "h1.h"
#include "sim.h"
#include "tls.h"

#define TLS_TIMEOUT (30 * NJ_SEC)

static const char garbage[] = "\x16\x03\x01 this is no HTTP at all";

void nj_sim_conn_fini(struct sim_conn *c)
{
    if (c->h2)
        nghttp2_session_del(c->h2);
    c->h2 = NULL;
    if (c->tls.on)
        nj_sim_tls_fini(c);
}

/* Is this end not the server's fault? */
static bool may_die(const struct sim_conn *c)
{
    const struct sim *sim = c->sim;
    if (c->state == SIM_CLOSED && c->peer_fin)
        return true; /* TIME_WAIT ended before all was read */
    if (c->kind == SIM_HTTP1 && nj_sim_h1_may_die(c))
        return true;
    return c->aborted || c->kind == SIM_SILENT || sim->mix.harsh || (sim->draining && !c->heard);
}

static void over(struct sim_conn *c, bool died)
{
    struct sim *sim = c->sim;
    bool excused = may_die(c);

    nj_tcp_release(&sim->client.tcp, c->tcb, sim->now);
    c->tcb = NULL;
    c->state = SIM_OVER;
    c->over_at = sim->now;
    nj_sim_log(sim, "conn %u: %s", c->index, died ? "dead" : "over");
    if (c->tls.on && !nj_sim_tls_over(c, died))
        return;
    if (died && !excused)
        nj_sim_fail(sim, "conn %u died, %u of %u requests done", c->index, c->n_done,
                    c->n_requests);
    bool unheard = sim->draining && c->n_read == 0 && !c->heard; /* the server ended it before */
    if (died || c->aborted || c->was_late || c->kind == SIM_SILENT || unheard)
        return;
    if (nj_sim_http(c))
        nj_sim_http(c)->check(c);
    else if (c->n_read > 0)
        nj_sim_fail(sim, "conn %u: an answer to garbage", c->index);
}

static void begin(struct sim_conn *c)
{
    nj_sim_log(c->sim, "conn %u: open", c->index);
    c->state = SIM_OPEN;
    if (c->tls.on) {
        nj_sim_tls_open(c);
    } else if (nj_sim_http(c)) {
        c->speaks = true;
        nj_sim_http(c)->open(c);
    } else if (c->kind == SIM_GARBAGE) {
        memcpy(c->out, garbage, sizeof garbage - 1);
        c->n_out = sizeof garbage - 1;
    }
}

static void input(struct sim_conn *c, const uint8_t *data, uint32_t n)
{
    if (c->tls.on)
        nj_sim_tls_input(c, data, n);
    else if (c->speaks)
        nj_sim_http(c)->input(c, data, n);
}

static void read_some(struct sim_conn *c)
{
    struct sim *sim = c->sim;
    const uint8_t *data;
    uint32_t n;

    while (!c->stalled_until && (n = nj_tcp_recv_peek(c->tcb, &data)) > 0) {
        if (nj_prng_below(&sim->client.prng, 8) == 0)
            n = 1 + nj_prng_below(&sim->client.prng, n);
        input(c, data, n);
        nj_tcp_recv_take(&sim->client.tcp, c->tcb, n);
        c->n_read += n;
        if (c->n_read >= c->stall_after) {
            c->stall_after = --c->n_stalls ? c->n_read + c->stall_gap : NJ_NEVER;
            c->stalled_until = sim->now + c->stall_for + 1;
            nj_sim_log(sim, "conn %u: stops reading", c->index);
        }
        if (c->n_read >= c->abort_after) {
            nj_sim_log(sim, "conn %u: resets", c->index);
            c->aborted = true;
            nj_tcp_abort(&sim->client.tcp, c->tcb, sim->now);
            return;
        }
    }
}

/* Does the client close after what HTTP has to send? */
static bool may_close(const struct sim_conn *c)
{
    return c->said_bye || (c->half_close && c->n_begun == c->n_requests);
}

static uint32_t http_output(struct sim_conn *c)
{
    const uint8_t *data;
    size_t n = c->speaks ? nj_sim_http(c)->output(c, &data) : 0;

    NJ_CHECK(n <= sizeof c->out);
    if (n > 0)
        memcpy(c->out, data, n);
    return (uint32_t)n;
}

/* Fills c->out if there is anything to send. */
static bool refill(struct sim_conn *c)
{
    if (c->out_off < c->n_out)
        return true;
    uint32_t n =
        c->tls.ssl ? nj_sim_tls_output(c, c->out, sizeof c->out, may_close(c)) : http_output(c);
    if (n == 0)
        return false;
    c->n_out = n;
    c->out_off = 0;
    return true;
}

static void write_some(struct sim_conn *c)
{
    struct sim *sim = c->sim;

    while (c->state == SIM_OPEN && !c->paused_until && refill(c)) {
        uint32_t n = c->n_out - c->out_off, room = nj_tcp_send_room(c->tcb);
        n = n < room ? n : room;
        if (c->n_written < c->cut_after && n > c->cut_after - c->n_written)
            n = (uint32_t)(c->cut_after - c->n_written);
        if (n == 0)
            return;
        NJ_CHECK(nj_tcp_send_copy(&sim->client.tcp, c->tcb, c->out + c->out_off, n));
        c->out_off += n;
        c->n_written += n;
        if (c->n_written == c->cut_after)
            c->paused_until = sim->now + c->cut_for + 1;
    }
}

static void close_now(struct sim_conn *c)
{
    c->state = SIM_CLOSED;
    nj_tcp_close(&c->sim->client.tcp, c->tcb, c->sim->now);
}

/* Detects that nothing is left to send or receive. */
static void see_end(struct sim_conn *c)
{
    bool all_read = c->peer_fin && nj_tcp_recv_peek(c->tcb, &(const uint8_t *){NULL}) == 0;
    bool all_said = may_close(c) && !c->paused_until && !refill(c);

    if (c->state == SIM_OPEN && (all_read || all_said))
        close_now(c);
    if (c->state == SIM_CLOSED && all_read)
        over(c, false);
}

static void go_on(struct sim_conn *c)
{
    read_some(c);
    if (c->aborted)
        return; /* EV_DEAD follows */
    if (c->speaks && !c->stay && !c->said_bye && nj_sim_http(c)->is_done(c))
        nj_sim_http(c)->bye(c);
    write_some(c);
    see_end(c);
}

void nj_sim_conn_turn(struct sim_conn *c, uint8_t events)
{
    if (events & NJ_TCP_EV_DEAD) {
        over(c, true);
        return;
    }
    if ((events & NJ_TCP_EV_OPENED) && c->state == SIM_OPENING)
        begin(c);
    if (events & NJ_TCP_EV_PEER_FIN)
        c->peer_fin = true;
    go_on(c);
}

/* A reused port pauses until it is free. */
static nj_ns begins_at(const struct sim_conn *c)
{
    if (c->port_of < 0)
        return c->start_at;
    const struct sim_conn *last = &c->sim->client.conn[c->port_of];
    if (last->state != SIM_OVER)
        return NJ_NEVER;
    nj_ns rested = last->over_at + c->rest;
    return rested > c->start_at ? rested : c->start_at;
}

/* The server ends a handshake after 10 s. If its RST is lost, only the client's own timer is left,
 * as TCP waits for the server without sending anything. */
static nj_ns gives_up_at(const struct sim_conn *c)
{
    return c->state == SIM_OPEN && c->tls.on && !c->heard && !c->aborted
               ? c->tls.opened_at + TLS_TIMEOUT
               : NJ_NEVER;
}

nj_ns nj_sim_conn_next(const struct sim_conn *c)
{
    nj_ns next = NJ_NEVER;

    if (c->state == SIM_WAITING)
        return begins_at(c);
    if (c->state == SIM_OVER || c->state == SIM_OPENING)
        return NJ_NEVER;
    if (c->paused_until)
        next = c->paused_until;
    if (c->stalled_until && c->stalled_until < next)
        next = c->stalled_until;
    if (c->state == SIM_OPEN && c->close_at < next)
        next = c->close_at;
    return gives_up_at(c) < next ? gives_up_at(c) : next;
}

/* A reused port must be free at the client; at the server it may be in TIME_WAIT. */
static void open_now(struct sim_conn *c)
{
    struct sim *sim = c->sim;

    if (c->port_of >= 0)
        c->port = sim->client.conn[c->port_of].port;
    struct nj_tuple tuple = {
        .remote = nj_sim_iface[SIM_SERVER].addr[0].ip,
        .local = sim->client.iface.addr[c->addr].ip,
        .rport = c->tls.on ? SIM_TLS_PORT : SIM_SERVER_PORT,
        .lport = c->port,
    };
    c->tcb = nj_tcp_connect(&sim->client.tcp, &tuple, sim->now);
    if (!c->tcb) {
        c->start_at = sim->now + 100 * NJ_MS;
        return;
    }
    c->tcb->user = c;
    c->state = SIM_OPENING;
}

void nj_sim_conn_alarm(struct sim_conn *c)
{
    struct sim *sim = c->sim;

    if (c->state == SIM_WAITING) {
        open_now(c);
        return;
    }
    if (c->paused_until && c->paused_until <= sim->now)
        c->paused_until = 0;
    if (c->stalled_until && c->stalled_until <= sim->now)
        c->stalled_until = 0;
    if (gives_up_at(c) <= sim->now) {
        nj_sim_log(sim, "conn %u: gives up its handshake", c->index);
        c->aborted = true;
        nj_tcp_abort(&sim->client.tcp, c->tcb, sim->now);
        return; /* EV_DEAD follows */
    }
    if (c->state == SIM_OPEN && c->close_at <= sim->now)
        close_now(c);
    if (c->tcb->state != NJ_TCP_CLOSED) /* otherwise EV_DEAD follows */
        go_on(c);
}
