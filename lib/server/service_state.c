/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/service_state.h"

#include <stdlib.h>

#include "log/log.h"
#include "threads/os_clock.h"

/* IPv6 addresses are tentative for a second. Without a link they stay so: the service has started
 * nevertheless. */
#define ADDRESSES_WAIT (5 * NJ_SEC)
/* After the drain: connections are reset, tasks end, devices are closed. */
#define END_TIME       (15 * NJ_SEC)

void nj__service_open(struct nj_service *v, bool is_notified)
{
    const struct nj_service_variables variables = {
        .notify_socket = getenv("NOTIFY_SOCKET"),
        .watchdog_usec = getenv("WATCHDOG_USEC"),
        .watchdog_pid = getenv("WATCHDOG_PID"),
    };
    char why[256];

    v->notify.fd = -1;
    if (!is_notified)
        return;
    if (nj_service_notify_open(&v->notify, &variables, why, sizeof why) != 0)
        nj_log(NJ_LEVEL_WARNING, "the service manager gets no messages: %s", why);
    nj_service_notify_send(&v->notify, "STATUS=starting");
}

static void announce_ready(struct nj_service *v, uint64_t n_open)
{
    if (atomic_load(&v->is_yielding))
        nj_service_notify_send(&v->notify,
                               "READY=1\nSTATUS=another process takes new connections: "
                               "%lu connection%s open",
                               (unsigned long)n_open, n_open == 1 ? "" : "s");
    else
        nj_service_notify_send(&v->notify, "READY=1\nSTATUS=%s", v->ready);
}

/* Of a server that was announced. What is worse than this state stays: a stop, a stuck lcore. */
static void announce_state(struct nj_service *v, uint64_t n_open, nj_ns now)
{
    v->announced_at = now;
    if (atomic_load(&v->is_ready_announced) && !v->is_stopping && !v->is_stuck_announced)
        announce_ready(v, n_open);
}

static void watch_lcores(struct nj_service *v, int stuck_lcore, uint64_t n_open, nj_ns now)
{
    bool is_stuck = stuck_lcore >= 0;

    if (is_stuck && !v->is_stuck_announced)
        nj_service_notify_send(&v->notify, "STATUS=lcore %d does not poll", stuck_lcore);
    else if (!is_stuck && v->is_stuck_announced && !v->is_stopping)
        announce_ready(v, n_open);
    v->is_stuck_announced = is_stuck;
    if (!is_stuck && nj_service_watchdog_is_due(&v->notify, now))
        nj_service_watchdog_send(&v->notify, now);
}

void nj__service_tick(struct nj_service *v, bool has_tentative_addresses, int stuck_lcore,
                      uint64_t n_open, nj_ns now)
{
    if (v->notify.fd < 0)
        return;
    nj_service_notify_retry(&v->notify);
    if (v->began_at == 0)
        v->began_at = now;
    if (atomic_load(&v->is_ready_announced) || v->is_stopping) {
        watch_lcores(v, stuck_lcore, n_open, now);
        if (atomic_load(&v->is_yielding) && now - v->announced_at >= NJ_SEC)
            announce_state(v, n_open, now);
    } else if (!has_tentative_addresses || now - v->began_at > ADDRESSES_WAIT) {
        /* First: the manager may ask for a reload as soon as it has the message, and waits for the
         * answer. */
        atomic_store(&v->is_ready_announced, true);
        announce_ready(v, n_open);
    }
}

void nj__service_yields(struct nj_service *v, bool yields, uint64_t n_open)
{
    atomic_store(&v->is_yielding, yields);
    announce_state(v, n_open, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
}

void nj__service_stopping(struct nj_service *v, nj_ns drain, uint64_t n_open)
{
    nj_service_notify_send(&v->notify,
                           "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lu\n"
                           "STATUS=stopping: %lu connection%s open",
                           (unsigned long)((drain + END_TIME) / NJ_US), (unsigned long)n_open,
                           n_open == 1 ? "" : "s");
    v->is_stopping = true;
}

void nj__service_reloading(struct nj_service *v)
{
    if (atomic_load(&v->is_ready_announced) && !v->is_stopping)
        nj_service_notify_send(&v->notify,
                               "RELOADING=1\nMONOTONIC_USEC=%lu\nSTATUS=reading files again",
                               (unsigned long)(nj_os_clock_gettime_ns(CLOCK_MONOTONIC) / NJ_US));
}

void nj__service_reloaded(struct nj_service *v, bool ok, uint64_t n_open)
{
    if (!atomic_load(&v->is_ready_announced) || v->is_stopping)
        return;
    if (ok)
        announce_ready(v, n_open);
    else
        nj_service_notify_send(&v->notify,
                               "READY=1\nSTATUS=a file that was read again has an error: the "
                               "former one is in force; see the log");
}

void nj__service_failed(struct nj_service *v, const char *why)
{
    nj_service_notify_send(&v->notify, "STATUS=%s", why);
    nj_service_notify_close(&v->notify);
}
