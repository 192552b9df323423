/* SPDX-License-Identifier: BSD-3-Clause */
/* What the service manager is told about the server: start, ready, reload, stop, and that all
 * lcores poll. See service_notify.h for the protocol, docs/deploy.md for the service. */
#include <stdio.h>
#include <stdlib.h>

#include "log/log.h"
#include "server/server_internal.h"
#include "threads/os_clock.h"

/* IPv6 addresses are tentative for a second. Without a link they stay so: the service has started
 * nevertheless. */
#define ADDRESSES_WAIT (5 * NJ_SEC)
/* After the drain: connections are reset, tasks end, devices are closed. */
#define END_TIME       (15 * NJ_SEC)

void nj__server_service_open(struct nj_server *s)
{
    const struct nj_service_variables variables = {
        .notify_socket = getenv("NOTIFY_SOCKET"),
        .watchdog_usec = getenv("WATCHDOG_USEC"),
        .watchdog_pid = getenv("WATCHDOG_PID"),
    };
    char why[256];

    s->service.fd = -1;
    if (!s->given.service_notify)
        return;
    if (nj_service_notify_open(&s->service, &variables, why, sizeof why) != 0)
        nj_log(NJ_LEVEL_WARNING, "the service manager gets no messages: %s", why);
    nj_service_notify_send(&s->service, "STATUS=starting");
}

static void announce_ready(struct nj_server *s)
{
    char text[NJ_READY_BYTES];

    if (atomic_load(&s->is_yielding)) {
        uint64_t open = nj_mgmt_sum_counter(&s->view, NJ_C_connections);
        snprintf(text, sizeof text, "another process takes new connections: %lu connection%s open",
                 (unsigned long)open, open == 1 ? "" : "s");
    } else {
        nj__server_format_ready(s, text, sizeof text);
    }
    nj_service_notify_send(&s->service, "READY=1\nSTATUS=%s", text);
}

/* Of a server that was announced. What is worse than this state stays: a stop, a stuck lcore. */
static void announce_state(struct nj_server *s, nj_ns now)
{
    s->state_announced_at = now;
    if (atomic_load(&s->is_ready_announced) && !s->is_stopping && !s->is_stuck_announced)
        announce_ready(s);
}

/* The first lcore that does not poll, or NULL. */
static const struct nj_lcore *stuck_lcore(const struct nj_server *s)
{
    nj_ns now = nj__shards_now(&s->shards);

    for (uint32_t i = 0; i < s->shards.n; i++)
        if (nj_watchdog_has_stalled(&s->watch[i], now))
            return &s->shards.lcore[i];
    return NULL;
}

static void watch_lcores(struct nj_server *s, nj_ns now)
{
    const struct nj_lcore *stuck = stuck_lcore(s);

    if (stuck && !s->is_stuck_announced)
        nj_service_notify_send(&s->service, "STATUS=lcore %u does not poll", stuck->id);
    else if (!stuck && s->is_stuck_announced && !s->is_stopping)
        announce_ready(s);
    s->is_stuck_announced = stuck != NULL;
    if (!stuck && nj_service_watchdog_is_due(&s->service, now))
        nj_service_watchdog_send(&s->service, now);
}

void nj__server_service_tick(struct nj_server *s)
{
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    if (s->service.fd < 0)
        return;
    nj_service_notify_retry(&s->service);
    if (s->service_began_at == 0)
        s->service_began_at = now;
    if (atomic_load(&s->is_ready_announced) || s->is_stopping) {
        watch_lcores(s, now);
        if (atomic_load(&s->is_yielding) && now - s->state_announced_at >= NJ_SEC)
            announce_state(s, now);
    } else if (!nj__ports_have_tentative_addresses(&s->ports, &s->shards) ||
               now - s->service_began_at > ADDRESSES_WAIT) {
        /* First: the manager may ask for a reload as soon as it has the message, and waits for the
         * answer. */
        atomic_store(&s->is_ready_announced, true);
        announce_ready(s);
    }
}

void nj__server_service_yields(struct nj_server *s, bool yields)
{
    atomic_store(&s->is_yielding, yields);
    announce_state(s, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
}

void nj__server_service_stopping(struct nj_server *s, nj_ns drain, uint64_t n_open)
{
    nj_service_notify_send(&s->service,
                           "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lu\n"
                           "STATUS=stopping: %lu connection%s open",
                           (unsigned long)((drain + END_TIME) / NJ_US), (unsigned long)n_open,
                           n_open == 1 ? "" : "s");
}

void nj__server_service_reloading(struct nj_server *s)
{
    if (atomic_load(&s->is_ready_announced) && !s->is_stopping)
        nj_service_notify_send(&s->service,
                               "RELOADING=1\nMONOTONIC_USEC=%lu\nSTATUS=reading files again",
                               (unsigned long)(nj_os_clock_gettime_ns(CLOCK_MONOTONIC) / NJ_US));
}

void nj__server_service_reloaded(struct nj_server *s, bool ok)
{
    if (!atomic_load(&s->is_ready_announced) || s->is_stopping)
        return;
    if (ok)
        announce_ready(s);
    else
        nj_service_notify_send(&s->service,
                               "READY=1\nSTATUS=a file that was read again has an error: the "
                               "former one is in force; see the log");
}

void nj__server_service_failed(struct nj_server *s, const char *why)
{
    nj_service_notify_send(&s->service, "STATUS=%s", why);
    nj_service_notify_close(&s->service);
}
