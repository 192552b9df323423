/* SPDX-License-Identifier: BSD-3-Clause */
#include "flood.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hello.h"

#define EVENTS         256
#define ANSWER_TIMEOUT NJ_SEC /* for an answer, if the connections are not held */
#define BEHIND_MAX     64u    /* connections begun in a row, between two looks at the others */

/* In the order of their beginning. */
struct conn {
    int fd; /* negative: ended */
    bool sent, answered;
    nj_ns until;
};

struct flood {
    const struct flood_options *o;
    int epoll;
    struct hello hello;
    struct nj_prng prng;
    struct conn *conn; /* a ring */
    uint64_t n_ring, head, tail;
    uint64_t n_sent, n_answered, n_refused, n_failed;
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    ended = 1;
}

static void end(struct conn *c)
{
    client_reset(c->fd);
    c->fd = -1;
}

static void begin(struct flood *f, nj_ns now)
{
    uint64_t n = f->tail++;
    struct conn *c = &f->conn[n % f->n_ring];
    struct epoll_event want = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = n};

    *c = (struct conn){.fd = client_socket(&f->o->to, n),
                       .until = now + (f->o->hold ? f->o->hold : ANSWER_TIMEOUT)};
    if (c->fd < 0)
        f->n_failed++;
    else
        epoll_ctl(f->epoll, EPOLL_CTL_ADD, c->fd, &want);
}

static void send_hello(struct flood *f, struct conn *c)
{
    hello_renew(&f->hello, &f->prng);
    c->sent = send(c->fd, f->hello.bytes, f->hello.n, MSG_NOSIGNAL) == (ssize_t)f->hello.n;
    f->n_sent += c->sent;
    f->n_failed += !c->sent;
    if (!c->sent)
        end(c);
}

static void on_event(struct flood *f, const struct epoll_event *e)
{
    struct conn *c = &f->conn[e->data.u64 % f->n_ring];
    uint8_t data[4096];

    if (e->data.u64 < f->head || c->fd < 0)
        return;
    if (e->events & (EPOLLERR | EPOLLHUP)) {
        f->n_refused += !c->answered;
        end(c);
        return;
    }
    if (!c->sent && (e->events & EPOLLOUT)) {
        send_hello(f, c);
        return;
    }
    if (!(e->events & EPOLLIN) || c->answered)
        return;
    ssize_t n = recv(c->fd, data, sizeof data, 0);
    c->answered = n > 0;
    f->n_answered += n > 0;
    f->n_refused += n == 0;
    if (n == 0 || (n > 0 && !f->o->hold))
        end(c);
}

static void end_old(struct flood *f, nj_ns now)
{
    for (; f->head < f->tail; f->head++) {
        struct conn *c = &f->conn[f->head % f->n_ring];
        if (c->fd >= 0 && now < c->until)
            return;
        if (c->fd >= 0)
            end(c);
    }
}

static void work(struct flood *f)
{
    struct epoll_event event[EVENTS];
    nj_ns began = client_now(), now = began;

    while (!ended && now - began < f->o->duration) {
        uint64_t n_due = (now - began) * f->o->rate / NJ_SEC + 1;
        for (uint32_t i = 0; i < BEHIND_MAX && f->tail < n_due && f->tail - f->head < f->n_ring;
             i++)
            begin(f, now);
        int n = epoll_wait(f->epoll, event, EVENTS, f->tail < n_due ? 0 : 1);
        for (int i = 0; i < n; i++)
            on_event(f, &event[i]);
        now = client_now();
        end_old(f, now);
    }
    double seconds = (double)(now - began) / NJ_SEC;
    end_old(f, NJ_NEVER);
    printf("{\"sent\": %llu, \"answered\": %llu, \"refused\": %llu, \"failed\": %llu, "
           "\"seconds\": %.3f, \"per_second\": %.1f}\n",
           (unsigned long long)f->n_sent, (unsigned long long)f->n_answered,
           (unsigned long long)f->n_refused, (unsigned long long)f->n_failed, seconds,
           (double)f->n_sent / seconds);
}

bool flood_run(const struct flood_options *o)
{
    nj_ns longest = o->hold > ANSWER_TIMEOUT ? o->hold : ANSWER_TIMEOUT;
    struct flood f = {.o = o,
                      .epoll = epoll_create1(EPOLL_CLOEXEC),
                      .n_ring = (longest / NJ_SEC + 2) * (o->rate + 1)};

    signal(SIGTERM, on_signal);
    nj_prng_init(&f.prng, o->seed);
    f.conn = calloc(f.n_ring, sizeof *f.conn);
    bool ok = f.conn && f.epoll >= 0 && hello_init(&f.hello);
    if (ok)
        work(&f);
    else
        fprintf(stderr, "nj-handshakes: no memory, or an unexpected ClientHello of libssl\n");
    free(f.conn);
    close(f.epoll);
    return ok;
}
