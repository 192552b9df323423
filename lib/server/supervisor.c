/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/supervisor.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/signal_stack.h"
#include "base/thread_start_on_cpus.h"
#include "log/log.h"
#include "log/log_writer.h"
#include "mgmt/transfers.h"
#include "rights/syscall_filter.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"
#include "telem/counters_packet.h"
#include "threads/os_clock.h"

#define TICK      (20 * NJ_MS)
#define ABORT_MIN (200 * NJ_MS) /* for the last RSTs to leave */
#define ABORT_MAX (2 * NJ_SEC)  /* even if the device no longer sends */

/* Waits for one tick. Returns whether nj_server_stop() was called. */
static bool is_stopped(struct nj_supervisor *v)
{
    nj_ns at = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) + TICK;
    const struct timespec until = {(time_t)(at / NJ_SEC), (long)(at % NJ_SEC)};

    return sem_clockwait(&v->stops, CLOCK_MONOTONIC, &until) == 0;
}

struct live {
    nj_ns at;
    uint64_t requests, bytes;
    bool on;
};

/* Once per second, on a terminal only, rewritten in place. Not while the terminal takes nothing:
 * the next one has the same counts. */
static void print_live_line(const struct nj_mgmt_view *view, struct live *l, nj_ns now)
{
    char line[192];

    if (!l->on || now - l->at < NJ_SEC)
        return;
    uint64_t requests = nj_mgmt_sum_counter(view, NJ_C_requests);
    uint64_t bytes = nj_mgmt_sum_counter(view, NJ_C_tx_bytes);
    double secs = (double)(now - l->at) / (double)NJ_SEC;
    int n = snprintf(
        line, sizeof line,
        "\r%10.0f req/s %9.1f Mbit/s out %6lu connections %12lu requests %8lu drops\033[K",
        (double)(requests - l->requests) / secs, (double)(bytes - l->bytes) * 8e-6 / secs,
        (unsigned long)nj_mgmt_sum_counter(view, NJ_C_connections), (unsigned long)requests,
        (unsigned long)(nj_mgmt_sum_counter_kind(view, NJ_KIND_RX_DROP) +
                        nj_mgmt_sum_counter_kind(view, NJ_KIND_TX_DROP)));
    if (nj_log_writer_n_waiting() == 0)
        nj_log_writer_put(line, (size_t)n);
    l->at = now;
    l->requests = requests;
    l->bytes = bytes;
}

static void tick_service(struct nj_supervisor *v, nj_ns now)
{
    const struct nj_supervised *of = &v->of;
    if (of->service->notify.fd < 0) /* no service manager waits for messages */
        return;
    const struct nj_lcore *stuck = nj__lcore_watch_stuck(&v->lcore_watch, of->shards);

    nj__service_tick(of->service, nj__ports_have_tentative_addresses(of->ports, of->shards),
                     stuck ? (int)stuck->id : -1, nj_mgmt_sum_counter(of->view, NJ_C_connections),
                     now);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void begin_stop(struct nj_supervisor *v, const struct live *live, nj_ns now)
{
    const struct nj_supervised *of = &v->of;
    nj_ns drain = atomic_load(&v->drain);
    uint64_t open = nj_mgmt_sum_counter(of->view, NJ_C_connections);

    if (live->on)
        nj_log_writer_put("\n", 1);
    nj_log(NJ_LEVEL_INFO, "stopping: %lu connection%s open", (unsigned long)open,
           open == 1 ? "" : "s");
    nj__service_stopping(of->service, drain, open);
    v->is_stopping = true;
    v->deadline = now + drain;
    nj_upgrade_stop(of->upgrade, now, v->deadline);
}

/* All lcores have drained. In an upgrade the other process is told, and has the device. */
static bool may_end(const struct nj_supervised *of, nj_ns now)
{
    if (!nj_upgrade_may_end(of->upgrade, now))
        return false;
    for (uint32_t k = 0; nj_upgrade_yields(of->upgrade) && k < of->ports->n; k++)
        nj_dpdk_port_detach_queues(&of->ports->port[k].dev);
    return true;
}

/* Waits for one tick. Returns true when the lcores have nothing left to do, or have to abort what
 * is left. */
static bool has_ended(struct nj_supervisor *v, const struct live *live)
{
    const struct nj_supervised *of = &v->of;
    bool is_called = is_stopped(v);
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    if (is_called && v->is_stopping)
        return true;
    if (is_called)
        begin_stop(v, live, now);
    nj_upgrade_tick(of->upgrade, now);
    if (!v->is_stopping && !nj_upgrade_yields(of->upgrade))
        return false;
    nj_ns deadline = nj_min_u64(v->is_stopping ? v->deadline : NJ_NEVER, of->upgrade->deadline);
    if (now >= deadline && !v->is_stopping)
        nj_log(NJ_LEVEL_WARNING, "upgrade: --upgrade-timeout is over: %lu connections are reset",
               (unsigned long)nj_mgmt_sum_counter(of->view, NJ_C_connections));
    return now >= deadline || (nj__shards_are_drained(of->shards) && may_end(of, now));
}

/* Resets what is left. */
static void abort_connections(struct nj_supervisor *v)
{
    nj_ns began = nj_os_clock_gettime_ns(CLOCK_MONOTONIC), waited = 0;

    nj__shards_set_phase(v->of.shards, NJ_PHASE_ABORT);
    while (waited < ABORT_MIN || (waited < ABORT_MAX && !nj__shards_are_drained(v->of.shards))) {
        if (is_stopped(v))
            break;
        waited = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) - began;
        atomic_store(&v->ticked_at, began + waited);
    }
}

static void *supervise(void *supervisor)
{
    struct nj_supervisor *v = supervisor;
    const struct nj_supervised *of = &v->of;
    bool wanted = of->config->live && of->is_program;
    struct live live = {.at = nj_os_clock_gettime_ns(CLOCK_MONOTONIC),
                        .on = wanted && isatty(STDERR_FILENO)};
    void *altstack = nj_altstack_install();

    nj_syscall_allow_list_load();
    if (wanted && !live.on)
        nj_log(NJ_LEVEL_INFO, "--live: standard error is not a terminal: no live line");
    while (!has_ended(v, &live)) {
        nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
        nj__ports_watch(of->ports, of->shards, now);
        atomic_store(&v->ticked_at, now);
        nj__lcore_watch_tick(&v->lcore_watch, of->shards);
        tick_service(v, now);
        nj__policy_end_due(of->policy, now);
        nj_mgmt_transfers_tick(of->view->transfers);
        if (v->is_stopping)
            continue;
        nj__policy_apply_hours(of->policy);
        nj__tls_identity_check_dates(of->tls, (int64_t)time(NULL));
        nj__tls_identity_rotate_tickets(of->tls, now);
        nj__ports_log_addresses(of->ports, of->shards);
        print_live_line(of->view, &live, now);
        nj__class_rates_update(&v->class_rates, of->view, now);
        nj__store_housekeeping_tick(of->housekeeping, now);
    }
    if (!nj__shards_are_drained(of->shards))
        abort_connections(v);
    nj__shards_set_phase(of->shards, NJ_PHASE_STOP);
    nj_altstack_remove(altstack);
    atomic_store_explicit(&v->is_over, true, memory_order_release);
    return NULL;
}

void nj__supervisor_set_drain(struct nj_supervisor *v, const struct nj_server_config *config)
{
    atomic_store(&v->drain, (nj_ns)(config->drain_timeout_s * (double)NJ_SEC));
}

int nj__supervisor_start(struct nj_supervisor *v, const struct nj_supervised *of,
                         const cpu_set_t *cpus)
{
    v->of = *of;
    nj__supervisor_set_drain(v, of->config);
    return nj_thread_start(&v->thread, cpus, supervise, v);
}
