/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/lcore_loop.h"

#include <sys/prctl.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "base/altstack.h"
#include "base/assert.h"

#define PUBLISH_STEP 256u /* steps between two writes of the gauges */
/* And once when the shard has had no work for so many: about when the lcore lies down. It takes up
 * to 0.3 ms when caches are cold, and what is polled for, such as a file that a worker opens, waits
 * meanwhile. */
#define PUBLISH_IDLE 2048u
/* And so often while it sleeps, when steps are few. */
#define PUBLISH_TIME (50 * NJ_MS)

/* The supervisor's wish, carried out once when it changes. */
static void follow(struct nj_lcore *l, enum nj_phase *done, nj_ns now)
{
    enum nj_phase wanted = atomic_load_explicit(&l->control->phase, memory_order_relaxed);

    if (wanted != *done && wanted >= NJ_PHASE_DRAIN)
        nj_shard_drain(l->shard, now);
    if (wanted != *done && wanted >= NJ_PHASE_ABORT)
        nj_shard_abort(l->shard, now);
    *done = wanted;
    if (wanted >= NJ_PHASE_DRAIN)
        atomic_store_explicit(&l->drained, !nj_shard_busy(l->shard), memory_order_release);
}

static int loop(void *lcore)
{
    struct nj_lcore *l = lcore;
    struct nj_counters *c = &l->shard->counters;
    /* Acquire: the shard was made by the main thread, which let us run by setting the phase. */
    enum nj_phase phase = atomic_load_explicit(&l->control->phase, memory_order_acquire);
    struct nj_idler idler;
    uint32_t n_steps = 0;
    nj_ns published = 0;
    uint64_t tsc = rte_rdtsc();
    void *altstack = nj_altstack_begin();

    nj_idle_begin(&idler, l->idle, l->waker, &l->rx);
    prctl(PR_SET_TIMERSLACK, 1ul); /* ns: a sleep of 50 us should not become 100 */
    while (phase != NJ_PHASE_STOP) {
        nj_ns now = nj_clock_at(l->clock, tsc);
        follow(l, &phase, now);
        uint32_t work = nj_shard_step(l->shard, now);
        nj_fabric_wake(l->end);

        if (work || nj_fabric_pending(l->end))
            nj_idle_over(&idler);
        else
            nj_idle_wait(&idler, now, nj_shard_next(l->shard));
        if (n_steps++ % PUBLISH_STEP == 0 || idler.n_steps == PUBLISH_IDLE ||
            (!work && now - published >= PUBLISH_TIME)) {
            nj_shard_publish(l->shard);
            published = now;
        }

        uint64_t then = tsc;
        tsc = rte_rdtsc();
        nj_count_n(c, work ? NJ_C_cycles_busy : NJ_C_cycles_idle, tsc - then);
        nj_count(c, work ? NJ_C_loops_busy : NJ_C_loops_idle);
    }
    nj_idle_end(&idler);
    nj_shard_leave(l->shard);
    nj_shard_publish(l->shard);
    nj_altstack_end(altstack);
    atomic_store_explicit(&l->left, true, memory_order_release);
    return 0;
}

static unsigned first_cpu(unsigned lcore)
{
    rte_cpuset_t set = rte_lcore_cpuset(lcore);
    unsigned cpu = 0;

    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &set))
        cpu++;
    return cpu;
}

uint32_t nj_lcores_list(struct nj_lcore *lcores, uint32_t n_max)
{
    uint32_t n = 0;
    unsigned id;

    RTE_LCORE_FOREACH(id)
    {
        if (n < n_max) {
            lcores[n].id = id;
            lcores[n].cpu = first_cpu(id);
            lcores[n].node = (int)rte_lcore_to_socket_id(id);
        }
        n++;
    }
    return n;
}

void nj_lcores_run(struct nj_lcore *lcores, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (lcores[i].id != rte_get_main_lcore())
            rte_eal_remote_launch(loop, &lcores[i], lcores[i].id);
    for (uint32_t i = 0; i < n; i++)
        if (lcores[i].id == rte_get_main_lcore())
            loop(&lcores[i]);
    rte_eal_mp_wait_lcore();
    for (uint32_t i = 0; i < n; i++) /* what the lcore wrote is the caller's again */
        NJ_CHECK(atomic_load_explicit(&lcores[i].left, memory_order_acquire));
}
