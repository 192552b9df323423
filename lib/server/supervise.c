/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor thread: drives the shutdown phases, logs events of lcores and ports, and prints
 * the live line. It never touches a packet. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/signal_stack.h"
#include "log/log.h"
#include "log/log_writer.h"
#include "server/server_internal.h"
#include "threads/os_clock.h"
#include "rights/syscall_filter.h"

#define TICK      (20 * NJ_MS)
#define ABORT_MIN (200 * NJ_MS) /* for the last RSTs to leave */
#define ABORT_MAX (2 * NJ_SEC)  /* even if the device no longer sends */

/* Waits for one tick. Returns whether nj_server_stop() was called. */
static bool is_stopped(struct nj_server *s)
{
    nj_ns at = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) + TICK;
    const struct timespec until = {(time_t)(at / NJ_SEC), (long)(at % NJ_SEC)};

    return sem_clockwait(&s->stops, CLOCK_MONOTONIC, &until) == 0;
}

struct live {
    nj_ns at;
    uint64_t requests, bytes;
    bool on;
};

/* Once per second, on a terminal only, rewritten in place. Not while the terminal takes nothing:
 * the next one has the same counts. */
static void print_live_line(const struct nj_server *s, struct live *l, nj_ns now)
{
    char line[192];

    if (!l->on || now - l->at < NJ_SEC)
        return;
    uint64_t requests = nj_mgmt_sum_counter(&s->view, NJ_C_requests);
    uint64_t bytes = nj_mgmt_sum_counter(&s->view, NJ_C_tx_bytes);
    double secs = (double)(now - l->at) / (double)NJ_SEC;
    int n = snprintf(
        line, sizeof line,
        "\r%10.0f req/s %9.1f Mbit/s out %6lu connections %12lu requests %8lu drops\033[K",
        (double)(requests - l->requests) / secs, (double)(bytes - l->bytes) * 8e-6 / secs,
        (unsigned long)nj_mgmt_sum_counter(&s->view, NJ_C_connections), (unsigned long)requests,
        (unsigned long)(nj_mgmt_sum_counter_kind(&s->view, NJ_KIND_RX_DROP) +
                        nj_mgmt_sum_counter_kind(&s->view, NJ_KIND_TX_DROP)));
    if (nj_log_writer_n_waiting() == 0)
        nj_log_writer_put(line, (size_t)n);
    l->at = now;
    l->requests = requests;
    l->bytes = bytes;
}

static void tick_service(struct nj_server *s)
{
    const struct nj_lcore *stuck = nj__lcore_watch_stuck(&s->lcore_watch, &s->shards);

    nj__service_tick(&s->service, nj__ports_have_tentative_addresses(&s->ports, &s->shards),
                     stuck ? (int)stuck->id : -1, nj_mgmt_sum_counter(&s->view, NJ_C_connections));
}

/* --- the end ---------------------------------------------------------------------------------- */

static void begin_stop(struct nj_server *s, const struct live *live, nj_ns now)
{
    nj_ns drain = (nj_ns)(s->settings.config->drain_timeout_s * (double)NJ_SEC);
    uint64_t open = nj_mgmt_sum_counter(&s->view, NJ_C_connections);

    if (live->on)
        nj_log_writer_put("\n", 1);
    nj_log(NJ_LEVEL_INFO, "stopping: %lu connection%s open", (unsigned long)open,
           open == 1 ? "" : "s");
    nj__service_stopping(&s->service, drain, open);
    s->is_stopping = true;
    s->deadline = now + drain;
    nj_upgrade_stop(&s->upgrade, now, s->deadline);
}

/* All lcores have drained. In an upgrade the other process is told, and has the device. */
static bool may_end(struct nj_server *s, nj_ns now)
{
    if (!nj_upgrade_may_end(&s->upgrade, now))
        return false;
    for (uint32_t k = 0; nj_upgrade_yields(&s->upgrade) && k < s->ports.n; k++)
        nj_dpdk_port_detach_queues(&s->ports.port[k].dev);
    return true;
}

/* Waits for one tick. Returns true when the lcores have nothing left to do, or have to abort what
 * is left. */
static bool has_ended(struct nj_server *s, const struct live *live)
{
    bool is_called = is_stopped(s);
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    if (is_called && s->is_stopping)
        return true;
    if (is_called)
        begin_stop(s, live, now);
    nj_upgrade_tick(&s->upgrade, now);
    if (!s->is_stopping && !nj_upgrade_yields(&s->upgrade))
        return false;
    nj_ns deadline = nj_min_u64(s->is_stopping ? s->deadline : NJ_NEVER, s->upgrade.deadline);
    if (now >= deadline && !s->is_stopping)
        nj_log(NJ_LEVEL_WARNING, "upgrade: --upgrade-timeout is over: %lu connections are reset",
               (unsigned long)nj_mgmt_sum_counter(&s->view, NJ_C_connections));
    return now >= deadline || (nj__shards_are_drained(&s->shards) && may_end(s, now));
}

void *nj__server_supervise(void *server)
{
    struct nj_server *s = server;
    bool wanted = s->settings.config->live && s->is_program;
    struct live live = {.at = nj_os_clock_gettime_ns(CLOCK_MONOTONIC),
                        .on = wanted && isatty(STDERR_FILENO)};
    void *altstack = nj_altstack_install();

    nj_syscall_allow_list_load();
    if (wanted && !live.on)
        nj_log(NJ_LEVEL_INFO, "--live: standard error is not a terminal: no live line");
    while (!has_ended(s, &live)) {
        nj__ports_watch(&s->ports, &s->shards, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
        nj__lcore_watch_tick(&s->lcore_watch, &s->shards);
        tick_service(s);
        if (s->is_stopping)
            continue;
        nj__policy_apply_hours(&s->policy);
        nj__tls_identity_check_dates(&s->tls, (int64_t)time(NULL));
        nj__tls_identity_rotate_tickets(&s->tls, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
        nj__ports_log_addresses(&s->ports, &s->shards);
        print_live_line(s, &live, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
        nj__class_rates_update(&s->class_rates, &s->view, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
        nj__store_housekeeping_tick(&s->housekeeping, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
    }
    if (!nj__shards_are_drained(&s->shards)) {
        nj__shards_set_phase(&s->shards, NJ_PHASE_ABORT);
        nj_ns began = nj_os_clock_gettime_ns(CLOCK_MONOTONIC), waited = 0;
        while (waited < ABORT_MIN || (waited < ABORT_MAX && !nj__shards_are_drained(&s->shards))) {
            if (is_stopped(s))
                break;
            waited = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) - began;
        }
    }
    nj__shards_set_phase(&s->shards, NJ_PHASE_STOP);
    nj_altstack_remove(altstack);
    atomic_store_explicit(&s->is_over, true, memory_order_release);
    return NULL;
}
