/* SPDX-License-Identifier: BSD-3-Clause */
/* Two shards on two threads in the same virtual time: both take each step at once, so common limits
 * are leased in any order. */
#include "support/shape_rig.h"

#include <pthread.h>

#if defined(__SANITIZE_THREAD__)
#define SPAN_NS (400 * NJ_MS)
#else
#define SPAN_NS (2 * NJ_SEC)
#endif
#define STEP_NS (200 * NJ_US)

struct pair {
    struct rig w;
    pthread_barrier_t begin, end;
    bool stop;
};

struct half {
    struct pair *pair;
    uint32_t shard;
};

static void *run_half(void *arg)
{
    struct half *h = arg;
    for (;;) {
        pthread_barrier_wait(&h->pair->begin);
        if (h->pair->stop)
            return NULL;
        rig_step_of(&h->pair->w, h->shard);
        pthread_barrier_wait(&h->pair->end);
    }
}

/* `at_half`: called once, between two steps. */
static void run_pair(struct pair *p, void (*at_half)(struct pair *p))
{
    pthread_t thread[2];
    struct half half[2] = {{p, 0}, {p, 1}};
    pthread_barrier_init(&p->begin, NULL, 3);
    pthread_barrier_init(&p->end, NULL, 3);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, run_half, &half[i]), 0);
    for (nj_ns t = 0; t < SPAN_NS; t += STEP_NS) {
        if (t == SPAN_NS / 2 && at_half)
            at_half(p);
        p->w.now += STEP_NS;
        pthread_barrier_wait(&p->begin);
        pthread_barrier_wait(&p->end);
    }
    p->stop = true;
    pthread_barrier_wait(&p->begin);
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

static void mark(struct pair *p)
{
    rig_mark(&p->w);
}

Test(shape_threads, two_classes_three_to_one, .timeout = 100)
{
    struct pair p = {.stop = false};
    rig_two(&p.w, 2, 300, 40 * MIB, (struct nj_limit){30 * MIB, 40 * MIB, 0},
            (struct nj_limit){10 * MIB, 40 * MIB, 0});
    rig_add(&p.w, 0, 0, 1, RIG_FOREVER);
    rig_add(&p.w, 1, 0, 2, RIG_FOREVER);
    rig_crowd(&p.w, RIG_EACH, 1, 200, 10, 200);
    run_pair(&p, mark);
    double a = (double)rig_sum(&p.w, 0, 2), b = (double)rig_sum(&p.w, 2, 202);
    cr_expect(a / b > 2.85 && a / b < 3.15, "%.3f", a / b);
    rig_near(a + b, 40.0 * MIB * (double)SPAN_NS / 2 / NJ_SEC, 25);
    rig_fini(&p.w);
}

Test(shape_threads, one_client_on_both, .timeout = 100)
{
    struct pair p = {.stop = false};
    rig_init(&p.w, 2, 300);
    p.w.policy.classes[0].client = (struct nj_limit){0, 10 * MIB, 0};
    rig_start(&p.w, 300);
    rig_crowd(&p.w, RIG_EACH, 0, 100, 1, 1);
    run_pair(&p, mark);
    rig_near(rig_sum(&p.w, 0, 100), 10.0 * MIB * (double)SPAN_NS / 2 / NJ_SEC, 35);
    uint64_t burst = 10 * MIB / 20;
    cr_expect_leq(rig_window(&p.w, 0, SPAN_NS / NJ_MS, 100), 10 * MIB / 10 + burst);
    rig_fini(&p.w);
}

static void swap(struct pair *p)
{
    static struct nj_policy next;
    next = p->w.policy;
    next.version++;
    next.total = (struct nj_limit){10 * MIB, 10 * MIB, 0};
    rig_adopt(&p->w, &next);
}

/* Short responses of clients that come and go on both shards, and limits that change. */
static struct nj_prng dice[RIG_SHARDS];

static void again(struct rig_res *r)
{
    struct nj_prng *d = &dice[r->shard];
    uint64_t n = 1 + nj_prng_below(d, 60000);
    rig_open_at(r->rig, r, r->shard, 0, 1 + nj_prng_below(d, 30), n);
}

Test(shape_threads, clients_come_and_go, .timeout = 100)
{
    struct pair p = {.stop = false};
    rig_init(&p.w, 2, 100);
    p.w.policy.total = (struct nj_limit){40 * MIB, 40 * MIB, 0};
    p.w.policy.classes[0].client = (struct nj_limit){0, 2 * MIB, 0};
    rig_start(&p.w, 100);
    p.w.ended = again;
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        nj_prng_init(&dice[i], 1 + i);
    for (uint32_t i = 0; i < 100; i++)
        rig_add(&p.w, i % 2, 0, 1 + i % 30, 1 + i * 500);
    run_pair(&p, swap);
    p.w.ended = NULL;
    uint32_t ms = SPAN_NS / NJ_MS;
    cr_expect_leq(rig_window(&p.w, ms / 2 + 1, ms, 100),
                  MIB + 10 * MIB / 20 + 2 * NJ_QUANTUM_MIN_BYTES);
    rig_fini(&p.w);
}
