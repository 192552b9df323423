/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Saves CPU time of an lcore without work: spin, yield, pause (WAITPKG, WFET), sleep, or wait for
 * a receive interrupt (rte_eth_dev_rx_intr_*). The wake-up protocol is in wakeup.h.
 */
#define ALLOW_EXPERIMENTAL_API /* rte_power_pause(), rte_cpu_get_intrinsics_support() */
#include "dpdk/idle_lcore.h"

#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_cpuflags.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_pause.h>
#include <rte_power_intrinsics.h>

/*
 * An lcore spins after its last work, then yields, then sleeps. The limits are times, not
 * only numbers of steps: where threads compete for a CPU, one step with a yield may take
 * milliseconds.
 *
 * The longest sleep depends on how the receive queue reports packets.
 *
 * A polled queue reports nothing, so packets wait for the end of the sleep. A ring has 1,024
 * descriptors; at 10 Gbit/s packets of the minimum size fill it in 70 us. So sleeps are short while
 * packets may come. After LONG_AFTER without packets they are longer, and the end of a burst may
 * then be lost.
 *
 * A file or an interrupt wakes the thread: packets wait for the kernel's scheduler, some 10 us, or
 * 100 us and more on a virtual machine. A long sleep then delays no packet, so it lasts until the
 * next timer. The files have longer queues: net_tap the interface's txqueuelen (1,000),
 * net_af_packet 512 frames or `framecnt`.
 */
#define SPIN         (50 * NJ_US) /* after the last work */
#define YIELD        (1 * NJ_MS) /* the same; at least STEPS_MIN steps, in which packets may come */
#define STEPS_MIN    16u
#define SLEEP        (50 * NJ_US)
#define SLEEP_LONG   (1 * NJ_MS)
#define LONG_AFTER   (100 * NJ_MS)
#define PAUSE        (5 * NJ_US)
/* Spurious wake-ups in a row after which the file or interrupt counts as broken (the interface is
 * gone or down). The queue is polled then, until packets come again. */
#define SPURIOUS_MAX 8u

void nj_idle_init(struct nj_idle_state *i, enum nj_idle mode, struct nj_wakeup *waker,
                  const struct nj_rx_source *rx, const struct nj_fd_waits *fds)
{
    *i = (struct nj_idle_state){.mode = mode, .waker = waker, .rx = *rx, .fds = fds};
    if (i->rx.notify != NJ_RX_INTERRUPT)
        return;
    i->rx.fd = epoll_create1(EPOLL_CLOEXEC);
    if (i->rx.fd >= 0 &&
        rte_eth_dev_rx_intr_ctl_q(rx->port, rx->queue, i->rx.fd, RTE_INTR_EVENT_ADD, NULL) == 0)
        return;
    if (i->rx.fd >= 0)
        close(i->rx.fd);
    i->rx.notify = NJ_RX_POLLED;
}

void nj_idle_fini(struct nj_idle_state *i)
{
    nj_idle_note_work(i);
    if (i->rx.notify == NJ_RX_INTERRUPT) {
        rte_eth_dev_rx_intr_ctl_q(i->rx.port, i->rx.queue, i->rx.fd, RTE_INTR_EVENT_DEL, NULL);
        close(i->rx.fd);
    }
}

bool nj_idle_has_power_pause(void)
{
    struct rte_cpu_intrinsics has = {0};

    rte_cpu_get_intrinsics_support(&has);
    return has.power_pause;
}

static void pause_for(nj_ns time)
{
    if (rte_power_pause(rte_rdtsc() + time * rte_get_tsc_hz() / NJ_SEC) != 0)
        rte_pause(); /* the CPU has none */
}

/* Packets from before the interrupt was enabled may raise none; the next step polls them. */
static void arm_wakeup(struct nj_idle_state *i)
{
    nj_wakeup_arm(i->waker);
    i->armed = true;
    if (i->rx.notify == NJ_RX_INTERRUPT && rte_eth_dev_rx_intr_enable(i->rx.port, i->rx.queue) != 0)
        i->n_spurious = SPURIOUS_MAX; /* polled, until there is work again */
}

void nj__idle_disarm_wakeup(struct nj_idle_state *i)
{
    nj_wakeup_disarm(i->waker);
    i->armed = false;
    if (i->rx.notify == NJ_RX_INTERRUPT)
        (void)rte_eth_dev_rx_intr_disable(i->rx.port, i->rx.queue);
}

static bool has_rx_event(const struct nj_idle_state *i)
{
    return i->rx.notify == NJ_RX_FILE || i->rx.notify == NJ_RX_INTERRUPT;
}

static nj_ns max_sleep(const struct nj_idle_state *i, nj_ns now)
{
    if (i->rx.notify == NJ_RX_NO_QUEUE || (has_rx_event(i) && i->n_spurious < SPURIOUS_MAX))
        return NJ_IDLE_SLEEP_MAX;
    return now - i->since < LONG_AFTER ? SLEEP : SLEEP_LONG;
}

/* The packet may arrive after its event: net_tap reads its file only after a signal. So the lcore
 * polls for a while. */
static void on_rx_event(struct nj_idle_state *i)
{
    struct rte_epoll_event event;

    if (i->rx.notify == NJ_RX_INTERRUPT)
        (void)rte_epoll_wait(i->rx.fd, &event, 1, 0);
    nj__idle_disarm_wakeup(i);
    i->n_steps = 0;
    i->n_spurious++;
}

static void sleep_for(struct nj_idle_state *i, nj_ns now, nj_ns until)
{
    nj_ns most = max_sleep(i, now);
    bool told = has_rx_event(i) && i->n_spurious < SPURIOUS_MAX;

    if (nj_wakeup_wait(i->waker, told ? i->rx.fd : -1, i->fds ? nj_fd_waits_fd(i->fds) : -1,
                       until < most ? until : most))
        on_rx_event(i);
}

void nj_idle_wait(struct nj_idle_state *i, nj_ns now, nj_ns next)
{
    nj_ns until = next > now ? next - now : 0;

    if (i->n_steps++ == 0)
        i->since = now;
    nj_ns idle = now - i->since;
    if (i->mode == NJ_IDLE_SPIN || idle < SPIN)
        rte_pause();
    else if (i->mode == NJ_IDLE_PAUSE)
        pause_for(until < PAUSE ? until : PAUSE);
    else if (idle < YIELD || i->n_steps < STEPS_MIN)
        sched_yield();
    else if (!nj_wakeup_is_armed(i->waker))
        arm_wakeup(i);
    else
        sleep_for(i, now, until);
}
