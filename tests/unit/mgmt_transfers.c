/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers of several lcores, which answer, answer late, or do not answer. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/relaxed_atomics.h"
#include "dpdk/wakeup.h"
#include "mgmt/transfer_rates.h"
#include "mgmt/transfers.h"
#include "support/shard_rig.h"

#define LONG  (100 * NJ_SEC) /* an answer comes before */
#define SHORT (60 * NJ_MS)   /* none comes */
#define N     2u

/* A shard that a thread steps, unless it is stopped. */
struct lcore {
    struct rig *r;
    pthread_t thread;
    _Atomic bool is_stopped, has_stopped, ends;
};

static struct lcore lcores[N];
static struct nj_mgmt_transfers *m;

static void *loop(void *lcore)
{
    struct lcore *l = lcore;

    while (!atomic_load(&l->ends)) {
        bool stopped = atomic_load(&l->is_stopped);
        atomic_store(&l->has_stopped, stopped);
        if (stopped)
            sched_yield();
        else
            rig_step(l->r);
    }
    return NULL;
}

/* Each shard has a download over HTTP/2 that its client does not read. */
static struct rig_peer *download(struct rig *r, uint16_t port)
{
    struct rig_peer *p = rig_connect_h2(r, port);

    p->manual = true;
    p->rcv_wnd = 2000;
    rig_get(r, p, 1, "/big");
    rig_settle(r);
    return p;
}

static void start(struct nj_wakeup *waker)
{
    struct nj_mgmt_lcore to[N];

    for (uint32_t i = 0; i < N; i++) {
        struct rig *r = rig_alloc(4096, 4096);
        lcores[i] = (struct lcore){.r = r};
        struct nj_shard_config c = rig_config(r);
        c.conns.number = i;
        rig_new_with(r, &c);
        download(r, 1000);
        download(r, 1001);
        to[i] = (struct nj_mgmt_lcore){&r->s->conns.commands, waker};
    }
    m = nj_mgmt_transfers_new(to, N);
    cr_assert(m);
    for (uint32_t i = 0; i < N; i++)
        cr_assert_eq(pthread_create(&lcores[i].thread, NULL, loop, &lcores[i]), 0);
}

static void finish(void)
{
    for (uint32_t i = 0; i < N; i++) {
        atomic_store(&lcores[i].ends, true);
        pthread_join(lcores[i].thread, NULL);
    }
    nj_mgmt_transfers_free(m);
    for (uint32_t i = 0; i < N; i++)
        rig_free(lcores[i].r);
}

static void stop(struct lcore *l)
{
    atomic_store(&l->is_stopped, true);
    while (!atomic_load(&l->has_stopped))
        sched_yield();
}

static struct nj_mgmt_transfers_answer list(nj_ns wait)
{
    struct nj_mgmt_transfers_answer a;

    cr_assert(
        nj_mgmt_transfers_list(m, &(struct nj_mgmt_transfers_filter){.n_shown = 9}, wait, &a));
    return a;
}

Test(mgmt_transfers, of_all_lcores)
{
    struct nj_wakeup waker;

    cr_assert(nj_wakeup_open(&waker));
    nj_wakeup_arm(&waker);
    start(&waker);
    struct nj_mgmt_transfers_answer a = list(LONG);
    cr_expect_not(nj_wakeup_is_armed(&waker), "it was woken");
    cr_assert(a.n == 4 && a.n_found == 4 && a.n_missing == 0);
    for (uint32_t i = 0; i < 4; i++) {
        cr_expect_eq(a.at[i].of.id.shard, i / 2);
        cr_expect(a.at[i].of.why == NJ_WHY_RECEIVER && a.at[i].of.n_done > 0);
        cr_expect(a.at[i].is_average);
    }
    const struct nj_transfer_id id = a.at[3].of.id;
    nj_mgmt_transfers_release(&a);
    cr_expect_eq(nj_mgmt_transfer_end(m, &id, LONG), NJ_MGMT_ENDED);
    cr_expect_eq(nj_mgmt_transfer_end(m, &id, LONG), NJ_MGMT_NOT_RUNNING);
    cr_expect_eq(nj_mgmt_transfer_end(m, &(struct nj_transfer_id){.shard = N}, LONG),
                 NJ_MGMT_NOT_RUNNING);
    a = list(LONG);
    cr_expect_eq(a.n, 3);
    nj_mgmt_transfers_release(&a);
    const struct nj_net peers = {rig_addr(RIG_PEER_IP), 128};
    struct nj_mgmt_network_end e = nj_mgmt_network_end(m, &peers, LONG);
    cr_expect(e.n_ended == 3 && e.n_missing == 0);
    a = list(LONG);
    cr_expect(a.n == 0 && a.at == NULL);
    nj_mgmt_transfers_release(&a);
    finish();
    nj_wakeup_close(&waker);
}

Test(mgmt_transfers, an_lcore_that_does_not_answer)
{
    start(NULL);
    stop(&lcores[1]);
    struct nj_mgmt_transfers_answer a = list(SHORT);
    cr_assert(a.n == 2 && a.n_missing == 1);
    cr_expect(a.at[0].of.id.shard == 0 && a.at[1].of.id.shard == 0);
    struct nj_transfer_id id = a.at[0].of.id;
    nj_mgmt_transfers_release(&a);
    a = list(SHORT); /* the answer to the first may still come */
    cr_expect(a.n == 2 && a.n_missing == 1);
    nj_mgmt_transfers_release(&a);
    cr_expect_eq(nj_mgmt_transfer_end(m, &id, LONG), NJ_MGMT_ENDED, "the other lcore runs");
    id.shard = 1;
    cr_expect_eq(nj_mgmt_transfer_end(m, &id, SHORT), NJ_MGMT_NO_ANSWER);
    const struct nj_net nobody = {rig_addr(0xc0000201u), 128};
    struct nj_mgmt_network_end e = nj_mgmt_network_end(m, &nobody, SHORT);
    cr_expect(e.n_ended == 0 && e.n_missing == 1);
    atomic_store(&lcores[1].is_stopped, false);
    a = list(LONG); /* asked before the end of one */
    cr_expect(a.n_missing == 0 && a.n == 3, "%u", a.n);
    nj_mgmt_transfers_release(&a);
    a = list(LONG);
    cr_expect(a.n_missing == 0 && a.n == 2, "%u", a.n);
    nj_mgmt_transfers_release(&a);
    finish();
}

/* A list that came late is the next answer; what was ended late is ended. */
Test(mgmt_transfers, late_answers)
{
    const struct nj_mgmt_transfers_filter other = {.n_shown = 9, .class_of = "other"};
    struct nj_mgmt_transfers_answer a;

    start(NULL);
    a = list(LONG);
    struct nj_transfer_id id = a.at[0].of.id;
    uint32_t late = id.shard;
    nj_mgmt_transfers_release(&a);
    stop(&lcores[late]);
    a = list(SHORT);
    cr_expect(a.n == 2 && a.n_missing == 1);
    nj_mgmt_transfers_release(&a);
    cr_expect_eq(nj_mgmt_transfer_end(m, &id, SHORT), NJ_MGMT_NO_ANSWER);
    cr_expect_eq(nj_mgmt_transfer_end(m, &id, SHORT), NJ_MGMT_NO_ANSWER, "one at a time");
    atomic_store(&lcores[late].is_stopped, false);
    cr_expect_eq(nj_mgmt_transfer_end(m, &id, LONG), NJ_MGMT_NOT_RUNNING);
    nj_mgmt_transfers_tick(m);
    stop(&lcores[late]);
    a = list(SHORT);
    cr_expect(a.n == 4 && a.n_missing == 0, "before it ended one: %u", a.n);
    nj_mgmt_transfers_release(&a);
    a = list(SHORT);
    cr_expect(a.n == 2 && a.n_missing == 1, "an answer is used once");
    nj_mgmt_transfers_release(&a);
    atomic_store(&lcores[late].is_stopped, false);
    cr_assert(nj_mgmt_transfers_list(m, &other, LONG, &a));
    cr_expect(a.n == 0 && a.n_missing == 0, "a late answer to another question is none");
    nj_mgmt_transfers_release(&a);
    finish();
}

/* The late answer comes while its memory is about to be freed, or never. */
Test(mgmt_transfers, an_lcore_that_ends_before_it_answers)
{
    start(NULL);
    stop(&lcores[0]);
    stop(&lcores[1]);
    struct nj_mgmt_transfers_answer a = list(SHORT);
    cr_expect(a.n == 0 && a.n_missing == 2 && !a.at);
    nj_mgmt_transfers_release(&a);
    atomic_store(&lcores[0].is_stopped, false);
    finish();
}

Test(mgmt_transfers, a_bounded_answer)
{
    const struct nj_mgmt_transfers_filter one = {.n_shown = 1},
                                          none = {.n_shown = 9, .class_of = "none"};
    struct nj_mgmt_transfers_answer a;

    start(NULL);
    cr_assert(nj_mgmt_transfers_list(m, &one, LONG, &a));
    cr_assert(a.n == 1 && a.n_found == 4);
    nj_mgmt_transfers_release(&a);
    cr_assert(nj_mgmt_transfers_list(m, &none, LONG, &a));
    cr_expect(a.n == 0 && a.n_found == 0);
    nj_mgmt_transfers_release(&a);
    a = list(LONG);
    cr_assert_eq(a.n, 4);
    for (uint32_t i = 1; i < 4; i++)
        cr_expect(a.at[i].bytes_per_s <= a.at[i - 1].bytes_per_s);
    nj_mgmt_transfers_release(&a);
    finish();
}

/* --- rates --- */

static struct nj_transfer transfer(uint64_t txn, uint64_t n_done, nj_ns age)
{
    return (struct nj_transfer){.id = {1, 2, txn}, .n_done = n_done, .age = age};
}

Test(mgmt_transfers, rates)
{
    struct nj_transfer_rates *r = nj_transfer_rates_new();
    struct nj_transfer t = transfer(5, 1000, NJ_SEC);
    bool is_average;
    nj_ns now = 50 * NJ_SEC;

    cr_assert(r);
    cr_expect_eq(nj_transfer_rates_note(r, &t, now, &is_average), 1000);
    cr_expect(is_average);
    t = transfer(5, 1500, NJ_SEC + 100 * NJ_MS);
    nj_transfer_rates_note(r, &t, now + 100 * NJ_MS, &is_average);
    cr_expect(is_average, "too short a time");
    for (uint32_t i = 1; i <= 100; i++) { /* it is 10 times as fast now */
        now += 100 * NJ_MS;
        t = transfer(5, 1000 + i * 1000, NJ_SEC + i * 100 * NJ_MS);
        uint64_t rate = nj_transfer_rates_note(r, &t, now, &is_average);
        if (i < 5)
            continue;
        cr_expect_not(is_average);
        cr_expect_eq(rate, 10000, "%lu at %u", rate, i);
    }
    t = transfer(6, 70, 0); /* another one */
    cr_expect_eq(nj_transfer_rates_note(r, &t, now, &is_average), 0);
    cr_expect(is_average);
    t = transfer(5, 101000, 20 * NJ_SEC); /* nothing came for a while */
    now += 2 * NJ_SEC;
    cr_expect_eq(nj_transfer_rates_note(r, &t, now, &is_average), 0);
    cr_expect_not(is_average);
    nj_transfer_rates_free(r);
}

/* More transfers than the table has room for. */
Test(mgmt_transfers, rates_of_many)
{
    struct nj_transfer_rates *r = nj_transfer_rates_new();
    uint32_t n_known = 0;
    bool is_average;

    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < 100000; i++) {
            struct nj_transfer t = transfer(i, 1000 * (pass + 1), NJ_SEC * (pass + 1));
            t.id.place = i;
            cr_assert_eq(nj_transfer_rates_note(r, &t, (10 + pass) * NJ_SEC, &is_average), 1000);
            n_known += !is_average;
        }
    }
    cr_expect_leq(n_known, 65536);
    nj_transfer_rates_free(r);
}
