/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and time: starts slots when they are due, and processes the events of the sockets. */
#include "load.h"
#include "threads/os_clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 1024

nj_ns load_clock(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

bool load_init(struct load *l)
{
    l->slots = calloc(l->o.n_slots, sizeof *l->slots);
    l->conns = calloc(l->o.n_conns, sizeof *l->conns);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!l->slots || !l->conns || l->epoll < 0)
        return false;
    for (uint32_t i = 0; i < l->o.n_conns; i++)
        l->conns[i] = (struct load_conn){.load = l, .index = i, .fd = -1};
    for (uint32_t i = 0; i < l->o.n_slots; i++)
        l->slots[i] = (struct load_slot){
            .conn = &l->conns[i % l->o.n_conns], .index = i, .group = i % l->o.n_paths};
    l->pausing_end = &l->pausing;
    nj_prng_init(&l->prng, l->o.seed);
    l->began = l->now = load_clock();
    return nj_meter_init(&l->meter, l->began, l->o.bin);
}

static void set_events(struct load_conn *c, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = c};

    if (events != c->events)
        epoll_ctl(c->load->epoll, EPOLL_CTL_MOD, c->fd, &e);
    c->events = events;
}

static void end_conn(struct load_conn *c, const char *outcome)
{
    struct load *l = c->load;

    for (struct load_slot *s = &l->slots[c->index]; s; s = load_slot_next(l, s)) {
        l->counts.closed += s->state == LOAD_REQUESTED;
        if (s->state != LOAD_NEW) /* begin() ends new slots */
            load_slot_end(s, outcome);
    }
    l->counts.refused += c->state == LOAD_CONN_CONNECTING;
    l->counts.gone += c->state == LOAD_CONN_OPEN;
    c->state = LOAD_CONN_GONE;
    if (c->fd >= 0)
        close(c->fd);
    nghttp2_session_del(c->session);
    free(c->out);
    c->session = NULL;
    c->out = NULL;
    c->fd = -1;
}

static void connect_to(struct load_conn *c)
{
    const struct load_options *o = &c->load->o;
    socklen_t n_addr = o->to.any.sa_family == AF_INET6 ? sizeof o->to.v6 : sizeof o->to.v4;
    struct epoll_event e = {.events = EPOLLOUT, .data.ptr = c};
    int yes = 1;

    c->state = LOAD_CONN_CONNECTING;
    c->events = EPOLLOUT;
    c->fd = socket(o->to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) ||
        (o->rcvbuf && setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &o->rcvbuf, sizeof o->rcvbuf)) ||
        (o->n_from && bind(c->fd, &o->from[c->index % o->n_from].any, n_addr)) ||
        (connect(c->fd, &o->to.any, n_addr) && errno != EINPROGRESS) ||
        epoll_ctl(c->load->epoll, EPOLL_CTL_ADD, c->fd, &e))
        end_conn(c, strerrorname_np(errno));
}

/* Sends the output of the session. False: the socket did not accept all, and the rest is kept; or
 * the connection failed. */
static bool flush(struct load_conn *c)
{
    const uint8_t *data = c->out;
    ssize_t n_bytes = (ssize_t)c->out_bytes, sent;

    c->dirty = false;
    while (n_bytes > 0 || (n_bytes = nghttp2_session_mem_send(c->session, &data)) > 0) {
        sent = send(c->fd, data, (size_t)n_bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            end_conn(c, strerrorname_np(errno));
            return false;
        }
        sent = sent < 0 ? 0 : sent;
        if (sent == n_bytes) {
            free(c->out);
            c->out = NULL;
            c->out_bytes = 0;
            n_bytes = 0;
            continue;
        }
        uint8_t *rest = malloc((size_t)(n_bytes - sent));
        if (!rest) {
            end_conn(c, "memory");
            return false;
        }
        memcpy(rest, data + sent, (size_t)(n_bytes - sent));
        free(c->out);
        c->out = rest;
        c->out_bytes = (size_t)(n_bytes - sent);
        return false;
    }
    return true;
}

static void flush_and_set_events(struct load_conn *c)
{
    enum load_manner manner = c->load->o.manner;
    bool all_sent = flush(c);

    if (c->state == LOAD_CONN_OPEN)
        set_events(c, (all_sent ? 0 : EPOLLOUT) |
                          (manner == LOAD_STOPS || manner == LOAD_SIPS ? 0 : EPOLLIN));
}

static void opened(struct load_conn *c)
{
    struct load *l = c->load;
    int error = 0;
    socklen_t n = sizeof error;

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) || error) {
        end_conn(c, strerrorname_np(error ? error : errno));
        return;
    }
    c->state = LOAD_CONN_OPEN;
    l->counts.connected++;
    if (!load_h2_open(c)) {
        end_conn(c, "nghttp2");
        return;
    }
    for (struct load_slot *s = &l->slots[c->index]; s; s = load_slot_next(l, s))
        if (s->state == LOAD_DUE)
            load_h2_send_request(s);
    flush_and_set_events(c);
}

static void begin(struct load *l, struct load_slot *s)
{
    struct load_conn *c = s->conn;

    s->state = LOAD_DUE;
    l->last_began_at = l->now;
    l->n_begun++;
    if (c->state == LOAD_CONN_NEW)
        connect_to(c);
    else if (c->state == LOAD_CONN_GONE)
        load_slot_end(s, "gone");
    else if (c->state == LOAD_CONN_OPEN) {
        load_h2_send_request(s);
        flush_and_set_events(c);
    }
}

void load_slot_repeat(struct load_slot *s)
{
    struct load *l = s->conn->load;

    if (!l->o.pause) {
        load_h2_send_request(s);
        return;
    }
    s->state = LOAD_PAUSES;
    s->due = l->now + l->o.pause;
    s->after = NULL;
    *l->pausing_end = s;
    l->pausing_end = &s->after;
}

/* Sends the requests of slots whose pause is over. Returns when the next pause is over, or
 * NJ_NEVER. */
static nj_ns resume(struct load *l)
{
    for (struct load_slot *s; (s = l->pausing) && s->due <= l->now;) {
        l->pausing = s->after;
        if (!l->pausing)
            l->pausing_end = &l->pausing;
        if (s->state == LOAD_PAUSES && s->conn->state == LOAD_CONN_OPEN) {
            load_h2_send_request(s);
            flush_and_set_events(s->conn);
        }
    }
    return l->pausing ? l->pausing->due : NJ_NEVER;
}

static void input(struct load_conn *c, size_t n_most)
{
    static uint8_t buffer[LOAD_READ_BYTES];
    struct load *l = c->load;
    ssize_t n = recv(c->fd, buffer, n_most, 0);

    if (n <= 0) {
        if (n == 0 || errno != EAGAIN)
            end_conn(c, n == 0 ? "closed" : strerrorname_np(errno));
        return;
    }
    l->now = load_clock();
    memset(l->chunk_bytes, 0, sizeof l->chunk_bytes);
    bool continues = load_h2_input(c, buffer, (size_t)n);
    nj_meter_add(&l->meter, l->chunk_bytes, l->o.n_paths, l->now);
    if (!continues)
        end_conn(c, "goaway");
}

static void process_events(struct load_conn *c, uint32_t events)
{
    if (c->state == LOAD_CONN_CONNECTING)
        opened(c);
    else if (c->state == LOAD_CONN_OPEN) {
        if (events & EPOLLIN)
            input(c, LOAD_READ_BYTES);
        else if (events & (EPOLLERR | EPOLLHUP))
            end_conn(c, "reset");
        if (c->state == LOAD_CONN_OPEN && (c->dirty || events & EPOLLOUT))
            flush_and_set_events(c);
    }
}

/* The periodic work of LOAD_SIPS and LOAD_DRIBBLES: reads of sockets, and window updates. */
static void tick(struct load *l)
{
    for (uint32_t i = 0; i < l->o.n_conns; i++) {
        struct load_conn *c = &l->conns[i];
        if (c->state != LOAD_CONN_OPEN)
            continue;
        if (l->o.manner == LOAD_SIPS)
            input(c, l->o.sip_bytes);
        else
            load_h2_dribble(c);
        if (c->state == LOAD_CONN_OPEN)
            flush_and_set_events(c);
    }
    l->next_tick = l->now + l->o.every;
}

/* Starts slots, the steady window and the periodic work when they are due. Returns when the next of
 * them is due. */
static nj_ns on_time(struct load *l, void (*steady)(struct load *l))
{
    const struct load_options *o = &l->o;
    nj_ns next = l->end_at, resumed = resume(l);

    while (l->n_begun < o->n_slots && l->began + l->n_begun * o->ramp <= l->now)
        begin(l, &l->slots[l->n_begun]);
    if (l->n_begun < o->n_slots) {
        next = l->began + l->n_begun * o->ramp;
        return next < resumed ? next : resumed;
    }
    if (l->end_at == NJ_NEVER && l->now >= l->last_began_at + o->settle) {
        nj_meter_window(&l->meter, l->now, o->hold);
        next = l->end_at = l->now + o->hold;
        steady(l);
    } else if (l->end_at == NJ_NEVER) {
        next = l->last_began_at + o->settle;
    }
    if (o->manner == LOAD_DRIBBLES || o->manner == LOAD_SIPS) {
        if (l->now >= l->next_tick)
            tick(l);
        next = next < l->next_tick ? next : l->next_tick;
    }
    return next < resumed ? next : resumed;
}

static void wait(struct load *l, nj_ns next)
{
    struct epoll_event events[EVENTS_MAX];
    nj_ns left = next > l->now ? next - l->now : 0;
    struct timespec t = {(time_t)(left / NJ_SEC), (long)(left % NJ_SEC)};
    int n = epoll_pwait2(l->epoll, events, EVENTS_MAX, &t, NULL);
    nj_ns woken = load_clock(), took;

    l->now = woken;
    for (int i = 0; i < n; i++)
        process_events(events[i].data.ptr, events[i].events);
    l->now = load_clock();
    took = l->now - woken;
    if (took > l->stall_max)
        l->stall_max = took;
    if (nj_meter_steady(&l->meter, woken) && took > l->stall_window_max)
        l->stall_window_max = took;
}

void load_run(struct load *l, void (*steady)(struct load *l))
{
    l->end_at = NJ_NEVER;
    while (l->now < l->end_at && l->n_ended < l->o.n_slots)
        wait(l, on_time(l, steady));
    for (uint32_t i = 0; i < l->o.n_slots; i++)
        if (l->slots[i].state == LOAD_REQUESTED)
            load_slot_end(&l->slots[i], "open");
}
