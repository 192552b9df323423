/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of a test: the shard's steps, and the clients' between them. */
#include <poll.h>
#include <unistd.h>

#include "dpdk/lcore_loop.h"
#include "testing/testing_internal.h"

#define STEPS_MAX 1000000u /* without time */

static bool step(struct nj_test *t)
{
    bool any = false;
    uint64_t turns = nj__test_workers_turns(t->workers);

    if (t->waits.n > 0)
        nj__fd_waits_collect(&t->waits, t->now);
    for (struct nj_test_client *c = t->clients; c; c = c->next) {
        if (!c->is_dead)
            nj__test_h2_send_bodies(c);
        any |= nj__test_tcp_flush(c);
    }
    any |= t->n_in > 0;
    any |= nj_shard_step(t->shard, t->now) > 0;
    for (struct nj_test_client *c = t->clients; c; c = c->next) {
        nj__test_h2_input(c);
        if (c->is_dead)
            nj__test_h2_end(c);
    }
    return any || nj__test_workers_turns(t->workers) != turns;
}

void nj__test_settle(struct nj_test *t)
{
    unsigned before = nj_lcore_set_id(0);

    for (uint32_t i = 0; i < STEPS_MAX; i++)
        if (!step(t) && t->n_in == 0 && nj_shard_next_at(t->shard) > t->now)
            break;
    nj_lcore_set_id(before);
}

/* To the next event, but not beyond `end`. False: `end` is reached. */
static bool advance_once(struct nj_test *t, nj_ns end)
{
    nj_ns next = nj_min_u64(nj_shard_next_at(t->shard), nj__test_workers_next_at(t->workers));

    if (t->now >= end)
        return false;
    if (next <= t->now) /* the steps above were not enough */
        next = t->now + NJ_MS;
    t->now = nj_min_u64(next, end);
    nj__test_settle(t);
    return true;
}

static nj_ns time_in(const struct nj_test *t, uint64_t ns)
{
    return ns < NJ_NEVER - t->now ? t->now + ns : NJ_NEVER - 1;
}

void nj_test_advance(struct nj_test *t, uint64_t ns)
{
    nj_ns end = time_in(t, ns);

    nj__test_settle(t);
    while (advance_once(t, end))
        ;
}

/* --- other threads and processes, in real time --- */

#define OUTSIDE_MS 1000 /* that nj_test_wait() leaves them for each of their steps */
#define FDS_MAX    256u

/* The descriptors that handlers wait for: [0] is that of other threads. Returns how many. */
static uint32_t list_fds(struct nj_test *t, struct pollfd fds[FDS_MAX])
{
    fds[0] = (struct pollfd){.fd = t->wakeup.fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = nj_fd_waits_fd(&t->waits), .events = POLLIN};
    return 2 + nj__test_workers_list_fds(t->workers, fds + 2, FDS_MAX - 2);
}

/* Other threads that signal a fiber find the wake-up armed, and write to it. */
bool nj_test_wait_outside(struct nj_test *t, unsigned ms)
{
    struct pollfd fds[FDS_MAX];
    uint64_t n_signals;

    nj__test_settle(t);
    bool any = poll(fds, list_fds(t, fds), (int)ms) > 0;
    (void)!read(t->wakeup.fd, &n_signals, sizeof n_signals);
    nj_wakeup_arm(&t->wakeup);
    nj__test_settle(t);
    return any;
}

/* A descriptor other than those that only wake: somebody else is to act. */
static bool awaits_outside(const struct nj_test *t)
{
    struct pollfd fds[FDS_MAX];
    uint32_t n = nj__test_workers_list_fds(t->workers, fds, FDS_MAX);

    return t->waits.n > 0 || n > nj__test_workers_waiting(t->workers);
}

static bool is_done(const struct nj_test_request *r)
{
    return r->resp.is_ended || r->resp.is_reset;
}

bool nj_test_wait(struct nj_test_request *r, uint64_t ns)
{
    struct nj_test *t = r->client->t;
    nj_ns end = time_in(t, ns);

    nj__test_settle(t);
    for (bool is_silent = false; !is_done(r);) {
        if (!is_silent && awaits_outside(t))
            is_silent = !nj_test_wait_outside(t, OUTSIDE_MS);
        else if (!advance_once(t, end))
            break;
    }
    return is_done(r);
}

uint64_t nj_test_now(const struct nj_test *t)
{
    return t->now - t->began;
}
