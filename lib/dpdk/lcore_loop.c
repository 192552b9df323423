/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The poll loop of an lcore: a run-to-completion loop that steps one shard. It also launches the
 * lcores and waits for them (rte_launch.h).
 */
#include "dpdk/lcore_loop.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <nightjar/handler.h>

#include "base/set_error.h"
#include "base/signal_stack.h"
#include "base/thread_start_on_cpus.h"
#include "telem/counters_packet.h"

_Static_assert(RTE_MAX_LCORE <= NJ_LCORES_MAX, "ids of lcores are below NJ_LCORES_MAX");

#define PUBLISH_STEP 256u /* steps between two writes of the gauges */
/* Also when the lcore is about to sleep after it polled, and at this interval while it sleeps. Not
 * more often: with cold caches one write takes up to 0.3 ms, which delays polled events such as a
 * file that a worker has opened. */
#define PUBLISH_TIME (50 * NJ_MS)
/* While another process shares the port: longest sleep between two looks at its packets. */
#define PEER_POLL    (500 * NJ_US)
#define POLL_US      200u /* polling interval while an lcore starts or ends */

static _Thread_local unsigned lcore_here = UINT_MAX;

unsigned nj_lcore_id(void)
{
    return lcore_here;
}

unsigned nj_lcore_set_id(unsigned id)
{
    unsigned before = lcore_here;

    lcore_here = id;
    return before;
}

static void enter_phase(struct nj_shard *s, enum nj_run_phase phase, nj_ns now)
{
    static const enum nj_port_role role[] = {
        [NJ_PHASE_START] = NJ_PORT_ALONE,  [NJ_PHASE_RUN] = NJ_PORT_ALONE,
        [NJ_PHASE_KEEP] = NJ_PORT_KEEPS,   [NJ_PHASE_TAKE] = NJ_PORT_TAKES,
        [NJ_PHASE_YIELD] = NJ_PORT_YIELDS, [NJ_PHASE_DRAIN] = NJ_PORT_ALONE,
    };

    atomic_thread_fence(memory_order_acquire); /* the channel to the other process is open */
    if (phase <= NJ_PHASE_DRAIN)
        nj_shard_set_port_role(s, role[phase], now);
    if (phase >= NJ_PHASE_DRAIN)
        nj_conns_drain(&s->conns, now);
    if (phase >= NJ_PHASE_ABORT)
        nj_tcp_abort_all(&s->tcp, now);
}

/* Applies the phase that the supervisor has set, once for each change. */
static void apply_phase(struct nj_lcore *l, enum nj_run_phase *done, nj_ns now)
{
    enum nj_run_phase wanted = atomic_load_explicit(&l->control->phase, memory_order_relaxed);

    if (wanted != *done)
        enter_phase(l->shard, wanted, now);
    *done = wanted;
    if (wanted >= NJ_PHASE_YIELD)
        atomic_store_explicit(&l->drained, !nj_shard_has_unfinished_work(l->shard),
                              memory_order_release);
}

/* Packets from another process wake no lcore: they are polled. */
static nj_ns next_at(const struct nj_lcore *l, nj_ns now)
{
    nj_ns next = nj_shard_next_at(l->shard);

    return l->shard->role == NJ_PORT_ALONE ? next : nj_min_u64(next, now + PEER_POLL);
}

static int loop(void *lcore)
{
    struct nj_lcore *l = lcore;
    struct nj_counters *c = &l->shard->counters;
    /* Acquire: the thread that set the phase created the shard before. */
    enum nj_run_phase phase = atomic_load_explicit(&l->control->phase, memory_order_acquire);
    phase = phase == NJ_PHASE_STOP ? phase : NJ_PHASE_START;
    struct nj_idle_state idler;
    uint32_t n_steps = 0;
    nj_ns published = 0;
    uint64_t tsc = rte_rdtsc();
    void *altstack = nj_altstack_install();

    lcore_here = l->id;
    if (l->init)
        l->init(l->id, l->hook_ctx);
    if (l->confine)
        l->confine();
    atomic_store_explicit(&l->state, NJ_LCORE_RUNS, memory_order_release);
    nj_idle_init(&idler, l->idle, l->waker, &l->rx, l->fds);
    prctl(PR_SET_TIMERSLACK, 1ul); /* ns: a sleep of 50 us should not become 100 */
    while (phase != NJ_PHASE_STOP) {
        nj_ns now = nj_tsc_clock_to_ns(l->clock, tsc);
        apply_phase(l, &phase, now);
        nj_fd_waits_look(l->fds, now, idler.n_steps > 0);
        uint32_t work = nj_shard_step(l->shard, now);
        nj_shard_rings_wake_receivers(l->end);

        bool was_armed = idler.armed;
        if (work || nj_shard_rings_has_tx(l->end))
            nj_idle_note_work(&idler);
        else
            nj_idle_wait(&idler, now, next_at(l, now));
        if (n_steps++ % PUBLISH_STEP == 0 || (idler.armed && !was_armed) ||
            (!work && now - published >= PUBLISH_TIME)) {
            nj_shard_publish(l->shard);
            published = now;
        }

        uint64_t then = tsc;
        tsc = rte_rdtsc();
        nj_count_n(c, work ? NJ_C_cycles_busy : NJ_C_cycles_idle, tsc - then);
        nj_count(c, work ? NJ_C_loops_busy : NJ_C_loops_idle);
    }
    nj_idle_fini(&idler);
    nj_conns_end(&l->shard->conns);
    nj_shard_publish(l->shard);
    if (l->fini)
        l->fini(l->id, l->hook_ctx);
    lcore_here = UINT_MAX;
    nj_altstack_remove(altstack);
    atomic_store_explicit(&l->state, NJ_LCORE_LEFT, memory_order_release);
    return 0;
}

/* The thread of the main lcore. */
static void *main_lcore_thread(void *lcore)
{
    struct nj_lcore *l = lcore;

    pthread_setname_np(pthread_self(), "nj-lcore-main");
    if (rte_thread_register() != 0) {
        atomic_store_explicit(&l->state, NJ_LCORE_FAILED, memory_order_release);
        return NULL;
    }
    loop(l);
    rte_thread_unregister();
    return NULL;
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

static enum nj_lcore_state state_of(const struct nj_lcore *l)
{
    return atomic_load_explicit(&l->state, memory_order_acquire);
}

static int launch(struct nj_lcore *l)
{
    rte_cpuset_t cpus = rte_lcore_cpuset(l->id);

    if (l->id != rte_get_main_lcore())
        return -rte_eal_remote_launch(loop, l, l->id);
    return nj_thread_start(&l->thread, &cpus, main_lcore_thread, l);
}

int nj_lcores_start_loops(struct nj_lcore *lcores, uint32_t n, char *why, size_t why_bytes)
{
    for (uint32_t i = 0; i < n; i++) {
        struct nj_lcore *l = &lcores[i];
        atomic_store_explicit(&l->state, NJ_LCORE_LAUNCHED, memory_order_relaxed);
        int rc = launch(l);
        if (rc == 0)
            continue;
        atomic_store_explicit(&l->state, NJ_LCORE_IDLE, memory_order_relaxed);
        return nj_set_error(why, why_bytes, "lcore %u does not start: %s", l->id,
                            rc == EBUSY ? "it already runs a function of the program"
                                        : strerror(rc));
    }
    for (uint32_t i = 0; i < n; i++) {
        while (state_of(&lcores[i]) == NJ_LCORE_LAUNCHED)
            rte_delay_us_sleep(POLL_US);
        if (state_of(&lcores[i]) == NJ_LCORE_FAILED)
            return nj_set_error(
                why, why_bytes,
                "lcore %u does not start: the EAL cannot register its thread (no lcore id "
                "is free, or a secondary process is attached)",
                lcores[i].id);
    }
    return 0;
}

uint32_t nj_lcores_wait(struct nj_lcore *lcores, uint32_t n, uint32_t wait_ms)
{
    uint64_t begin = rte_rdtsc(), wait = rte_get_tsc_hz() / 1000 * wait_ms;
    uint32_t n_running = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct nj_lcore *l = &lcores[i];
        while (state_of(l) >= NJ_LCORE_LAUNCHED && rte_rdtsc() - begin < wait)
            rte_delay_us_sleep(POLL_US);
        enum nj_lcore_state state = state_of(l);
        if (state >= NJ_LCORE_LAUNCHED) {
            n_running++;
            continue;
        }
        if (state != NJ_LCORE_IDLE && l->id == rte_get_main_lcore())
            pthread_join(l->thread, NULL);
        else if (state != NJ_LCORE_IDLE)
            rte_eal_wait_lcore(l->id);
        atomic_store_explicit(&l->state, NJ_LCORE_IDLE, memory_order_relaxed);
    }
    return n_running;
}
