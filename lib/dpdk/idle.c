/* SPDX-License-Identifier: BSD-3-Clause */
#define ALLOW_EXPERIMENTAL_API /* rte_power_pause() and whether there is one */
#include "dpdk/idle.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include <rte_cpuflags.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_pause.h>
#include <rte_power_intrinsics.h>

/* New packets wait as long as a sleep is. A device's ring has 1,024 places: at 10 Gbit/s the least
 * packets fill it in 70 us, so sleeps are short while packets may come. Once nothing has come for
 * LONG_AFTER they are longer: of a burst after that the end may be lost. */
#define SPINS        256u
#define YIELDS       2048u
#define SLEEP        (50 * NJ_US)
#define SLEEP_LONG   (1 * NJ_MS)
#define LONG_AFTER   (100 * NJ_MS)
#define PAUSE        (5 * NJ_US)
#define INTERRUPT_MS 1 /* the least time-out of rte_epoll_wait() but 0 */

void nj_idle_begin(struct nj_idler *i, enum nj_idle mode, bool interrupts, uint16_t port,
                   uint16_t queue)
{
    *i = (struct nj_idler){.mode = mode, .port = port, .queue = queue};
    i->interrupts =
        mode == NJ_IDLE_INTERRUPT && interrupts &&
        rte_eth_dev_rx_intr_ctl_q(port, queue, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, NULL) == 0;
}

bool nj_idle_has_pause(void)
{
    struct rte_cpu_intrinsics has = {0};

    rte_cpu_get_intrinsics_support(&has);
    return has.power_pause;
}

static void sleep_for(nj_ns time)
{
    struct timespec ts = {.tv_nsec = (long)time};
    nanosleep(&ts, NULL);
}

/* Packets that come before the interrupt is on have no interrupt: they wait for the time-out. */
static void wait_for_interrupt(const struct nj_idler *i)
{
    struct rte_epoll_event event;

    int rc = rte_eth_dev_rx_intr_enable(i->port, i->queue);
    if (rc != 0 && rc != -ENOTSUP) { /* net_tap has nothing to enable: its queue is a file */
        sleep_for(SLEEP);
        return;
    }
    if (rte_eth_rx_queue_count(i->port, i->queue) <= 0)
        (void)rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1, INTERRUPT_MS);
    (void)rte_eth_dev_rx_intr_disable(i->port, i->queue);
}

static void pause_for(nj_ns time)
{
    if (rte_power_pause(rte_rdtsc() + time * rte_get_tsc_hz() / NJ_SEC) != 0)
        rte_pause(); /* the CPU has none */
}

void nj_idle_wait(struct nj_idler *i, nj_ns now, nj_ns next)
{
    nj_ns until = next > now ? next - now : 0;

    if (i->n_steps++ == 0)
        i->since = now;
    if (i->mode == NJ_IDLE_SPIN || i->n_steps < SPINS)
        rte_pause();
    else if (i->mode == NJ_IDLE_PAUSE)
        pause_for(until < PAUSE ? until : PAUSE);
    else if (i->n_steps < YIELDS)
        sched_yield();
    else if (i->interrupts && until >= INTERRUPT_MS * NJ_MS)
        wait_for_interrupt(i);
    else if (i->interrupts || now - i->since < LONG_AFTER)
        sleep_for(until < SLEEP ? until : SLEEP);
    else
        sleep_for(until < SLEEP_LONG ? until : SLEEP_LONG);
}
