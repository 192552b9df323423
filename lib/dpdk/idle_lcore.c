/* SPDX-License-Identifier: BSD-3-Clause */
#define ALLOW_EXPERIMENTAL_API /* rte_power_pause() and whether there is one */
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
 * How long a sleep may be depends on who tells of new packets.
 *
 * Nobody does: packets wait as long as the sleep is. A device's ring has 1,024 places: at 10 Gbit/s
 * the least packets fill it in 70 us, so sleeps are short while packets may come. Once nothing has
 * come for LONG_AFTER they are longer: of a burst after that the end may be lost.
 *
 * A file or an interrupt does: packets wait as long as the kernel takes to let a thread run, some
 * 10 us, 100 and more on a virtual machine, and until it runs a ring must do as above. Then the
 * length of a sleep costs nothing but CPU time, so it is as long as nothing else is due. The files
 * have longer queues: net_tap's the interface's txqueuelen (1,000), net_af_packet's 512 frames or
 * what `framecnt` says.
 */
#define SPINS       256u
#define YIELDS      2048u
#define SLEEP       (50 * NJ_US)
#define SLEEP_LONG  (1 * NJ_MS)
#define LONG_AFTER  (100 * NJ_MS)
#define PAUSE       (5 * NJ_US)
/* A file that says so often in a row that it can be read, and cannot, is broken (the interface is
 * gone or down): it is polled, until packets come again. */
#define IN_VAIN_MAX 8u

void nj_idle_begin(struct nj_idler *i, enum nj_idle mode, struct nj_waker *waker,
                   const struct nj_rx *rx)
{
    *i = (struct nj_idler){.mode = mode, .waker = waker, .rx = *rx};
    if (i->rx.news != NJ_RX_INTERRUPT)
        return;
    i->rx.fd = epoll_create1(EPOLL_CLOEXEC);
    if (i->rx.fd >= 0 &&
        rte_eth_dev_rx_intr_ctl_q(rx->port, rx->queue, i->rx.fd, RTE_INTR_EVENT_ADD, NULL) == 0)
        return;
    if (i->rx.fd >= 0)
        close(i->rx.fd);
    i->rx.news = NJ_RX_POLLED;
}

void nj_idle_end(struct nj_idler *i)
{
    nj_idle_over(i);
    if (i->rx.news == NJ_RX_INTERRUPT) {
        rte_eth_dev_rx_intr_ctl_q(i->rx.port, i->rx.queue, i->rx.fd, RTE_INTR_EVENT_DEL, NULL);
        close(i->rx.fd);
    }
}

bool nj_idle_has_pause(void)
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

/* Packets that came before the interrupt was on may have none: the step that follows finds them. */
static void lie_down(struct nj_idler *i)
{
    nj_waker_arm(i->waker);
    i->armed = true;
    if (i->rx.news == NJ_RX_INTERRUPT && rte_eth_dev_rx_intr_enable(i->rx.port, i->rx.queue) != 0)
        i->n_in_vain = IN_VAIN_MAX; /* polled, until there is work again */
}

void nj__idle_rise(struct nj_idler *i)
{
    nj_waker_disarm(i->waker);
    i->armed = false;
    if (i->rx.news == NJ_RX_INTERRUPT)
        (void)rte_eth_dev_rx_intr_disable(i->rx.port, i->rx.queue);
}

static bool is_told(const struct nj_idler *i)
{
    return i->rx.news == NJ_RX_FILE || i->rx.news == NJ_RX_INTERRUPT;
}

static nj_ns longest(const struct nj_idler *i, nj_ns now)
{
    if (i->rx.news == NJ_RX_NO_QUEUE || (is_told(i) && i->n_in_vain < IN_VAIN_MAX))
        return NJ_IDLE_LONGEST;
    return now - i->since < LONG_AFTER ? SLEEP : SLEEP_LONG;
}

/* The packet may take a moment longer than its news: net_tap looks at its file when a signal has
 * said so. So the lcore polls for a while. */
static void hear_device(struct nj_idler *i)
{
    struct rte_epoll_event event;

    if (i->rx.news == NJ_RX_INTERRUPT)
        (void)rte_epoll_wait(i->rx.fd, &event, 1, 0);
    nj__idle_rise(i);
    i->n_steps = 0;
    i->n_in_vain++;
}

static void sleep_for(struct nj_idler *i, nj_ns now, nj_ns until)
{
    nj_ns most = longest(i, now);
    bool told = is_told(i) && i->n_in_vain < IN_VAIN_MAX;

    if (nj_waker_wait(i->waker, told ? i->rx.fd : -1, until < most ? until : most))
        hear_device(i);
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
    else if (!nj_waker_armed(i->waker))
        lie_down(i);
    else
        sleep_for(i, now, until);
}
