/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor thread: drives the shutdown phases, logs events of lcores and ports, and prints
 * the live line. It never touches a packet. */
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/signal_stack.h"
#include "log/address_text.h"
#include "log/log.h"
#include "log/log_writer.h"
#include "server/server_internal.h"
#include "threads/os_clock.h"
#include "rights/syscall_filter.h"

#define URL_BYTES (NJ_ADDRESS_TEXT_BYTES + 21u) /* " https://[...]:65535/" */

#define TICK        (20 * NJ_MS)
#define TIDY_PERIOD NJ_SEC        /* between two removals of unused entries from the file store */
#define ABORT_MIN   (200 * NJ_MS) /* for the last RSTs to leave */
#define ABORT_MAX   (2 * NJ_SEC)  /* even if the device no longer sends */

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

/* Logs the messages of an lcore. */
static void log_notes(struct nj_lcore_log *notes)
{
    char line[NJ_LCORE_LOG_BYTES];

    for (uint32_t k = 0; k <= NJ_LCORE_LOG_LINES && nj_lcore_log_take(notes, line, sizeof line);
         k++)
        nj_log(NJ_LEVEL_WARNING, "%s", line);
}

static void log_abuse(struct nj_server *s)
{
    const struct nj_abuse *of[NJ_SHARDS_MAX];
    struct nj_abuse_line line;
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    for (uint32_t i = 0; i < s->shards.n; i++)
        of[i] = &s->shards.shard[i]->abuse;
    while (nj_abuse_log_next(&s->abuse_log, of, s->shards.n, now, &line))
        nj_log(line.level, "%s", line.text);
}

/* Logs each lcore that does not poll. */
static void watch(struct nj_server *s)
{
    char line[256];

    for (uint32_t i = 0; i < s->shards.n; i++) {
        log_notes(&s->shards.log[i]);
        const struct nj_counters *c = &s->shards.shard[i]->counters;
        struct nj_watchdog_sample sample = {
            .lcore = s->shards.lcore[i].id,
            .loops = nj_counter_read(c, NJ_C_loops_busy) + nj_counter_read(c, NJ_C_loops_idle),
        };
        struct nj_ewyk *ewyk = s->shards.shard[i]->handlers.ewyk;
        struct nj_ewyk_hold hold;
        struct nj_ewyk_long_hold past;
        if (ewyk && nj_ewyk_current_core_holder(ewyk, &hold)) {
            sample.route = hold.class_of->name;
            sample.since = hold.since;
        }
        if (ewyk && nj_ewyk_pop_long_hold(ewyk, &past)) {
            sample.ended = past.hold.class_of->name;
            sample.ended_since = past.hold.since;
            sample.ended_ns = past.ns;
        }
        nj_ns now = nj__shards_now(&s->shards);
        if (nj_watchdog_check_sample(&s->watch[i], &sample, now, line, sizeof line))
            nj_log(NJ_LEVEL_WARNING, "%s", line);
    }
}

/* --print-placement prints the same text. */
static void log_advice(char *advice)
{
    static const char head[] = "nightjar: ";
    char *rest = NULL;

    for (char *line = strtok_r(advice, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        nj_log(NJ_LEVEL_WARNING, "%s",
               line + (strncmp(line, head, strlen(head)) == 0 ? strlen(head) : 0));
}

/* Writes the ids of the lcores, such as " 2, 3". */
static void format_lcores(const struct nj_server *s, const struct nj_server_port *p, char *text,
                          size_t n)
{
    size_t at = 0;

    for (uint32_t i = 0; i < p->n_shards && at < n; i++)
        at += (size_t)snprintf(text + at, n - at, "%s %u", i ? "," : "",
                               s->shards.lcore[p->first + i].id);
}

/* Writes a space and the URL. Returns the length. */
static size_t format_url(const char *scheme, const struct nj_addr *ip, uint16_t port, char *out,
                         size_t n)
{
    char text[NJ_ADDRESS_TEXT_BYTES];
    bool v4 = nj_addr_is_v4(ip);

    return (size_t)snprintf(out, n, " %s://%s%s%s:%u/", scheme, v4 ? "" : "[",
                            nj_address_text(ip, text), v4 ? "" : "]", port);
}

/* Logs the port. */
static void log_port(const struct nj_server *s, const struct nj_server_port *p)
{
    const struct nj_dpdk_port *d = &p->dev;
    char mac[RTE_ETHER_ADDR_FMT_SIZE], lcores[NJ_SHARDS_MAX * 6u] = ""; /* ", 1023" */

    if (s->ports.n > 1)
        format_lcores(s, p, lcores, sizeof lcores);
    rte_ether_format_addr(mac, sizeof mac, &d->mac);
    nj_log(NJ_LEVEL_INFO, "%s (%s) %s, mtu %u, %u lcore%s%s: %s; %s", d->name, d->driver, mac,
           d->mtu, p->n_shards, p->n_shards == 1 ? "" : "s", lcores, d->spread, d->offloads);
}

/* Appends the port's addresses to the `at` bytes of `urls`. Returns the length. */
static size_t format_urls(const struct nj_server *s, const struct nj_server_port *p, size_t at,
                          char *urls, size_t n_urls)
{
    for (unsigned i = 0; i < p->settings->iface.n_addrs && at < n_urls; i++) {
        const struct nj_addr *ip = &p->settings->iface.addr[i].ip;
        at += format_url("http", ip, s->settings.config->listen_port, urls + at, n_urls - at);
        if (s->tls.has_tls && at < n_urls)
            at += format_url("https", ip, s->settings.config->tls_port, urls + at, n_urls - at);
    }
    return at;
}

void nj__server_format_ready(const struct nj_server *s, char *text, size_t n)
{
    const struct nj_server_config *c = s->settings.config;
    char urls[2 * NJ_SERVER_ADDRS_MAX * URL_BYTES] = "", routes[64] = "";
    size_t at = 0;

    for (uint32_t k = 0; k < s->ports.n; k++)
        at = format_urls(s, &s->ports.port[k], at, urls, sizeof urls);
    if (c->n_routes > 0)
        snprintf(routes, sizeof routes, "%s%u route%s", c->root ? " and " : " of ", c->n_routes,
                 c->n_routes == 1 ? "" : "s");
    snprintf(text, n, "ready:%s serves %s%s", urls, c->root ? c->root : "handlers", routes);
}

void nj__server_log_ready(const struct nj_server *s)
{
    char advice[2048], text[2 * NJ_SERVER_ADDRS_MAX * URL_BYTES + PATH_MAX];

    if (s->ports.n == 1 || nj__ports_common_numa_node(&s->ports) >=
                               0) { /* otherwise lcores have to be on several nodes */
        nj_placement_format_advice(&s->place, nj__ports_common_numa_node(&s->ports), &s->cpus,
                                   advice, sizeof advice);
        log_advice(advice);
    }
    for (uint32_t k = 0; k < s->ports.n; k++)
        log_port(s, &s->ports.port[k]);
    nj__server_format_ready(s, text, sizeof text);
    nj_log(NJ_LEVEL_INFO, "%s; version %s", text, nj_version());
}

/* --- the file store --------------------------------------------------------------------------- */

static void run_tidy(struct nj_task *task)
{
    struct nj_server *s = nj_container_of(task, struct nj_server, tidy);

    nj_file_store_run_housekeeping(s->store);
    nj__server_watch_root(s);
    if (!atomic_load(&s->is_yielding))
        nj_socket_file_watch(&s->upgrade.file);
}

static void reject_tidy(struct nj_task *task)
{
    nj_container_of(task, struct nj_server, tidy)->tidying = false;
}

static struct nj_worker_ops port_of_files(struct nj_server *s)
{
    return nj_worker_pool_ops(s->workers, s->shards.n, NJ_WORKER_FILES);
}

void nj__server_reap_tidy_task(struct nj_server *s)
{
    struct nj_worker_ops port = port_of_files(s);
    struct nj_task *home;

    if (s->tidying && port.poll(port.ctx, &home, 1) == 1)
        s->tidying = false;
}

/* Removes unused entries of the store also when no requests arrive. Runs on a worker, since it may
 * block. */
static void tidy_store(struct nj_server *s, nj_ns now)
{
    static const struct nj_task_ops ops = {run_tidy, reject_tidy};
    struct nj_worker_ops port = port_of_files(s);

    nj__server_reap_tidy_task(s);
    if (!s->store || s->tidying || now < s->tidy_at)
        return;
    s->tidy_at = now + TIDY_PERIOD;
    s->tidy = (struct nj_task){.ops = &ops};
    nj_list_init(&s->tidy.node);
    s->tidying = port.submit(port.ctx, &s->tidy);
    port.flush(port.ctx);
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
    nj__server_service_stopping(s, drain, open);
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
        watch(s);
        nj__server_service_tick(s);
        log_abuse(s);
        if (s->is_stopping)
            continue;
        nj__policy_apply_hours(&s->policy);
        nj__tls_identity_check_dates(&s->tls, (int64_t)time(NULL));
        nj__tls_identity_rotate_tickets(&s->tls, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
        nj__ports_log_addresses(&s->ports, &s->shards);
        print_live_line(s, &live, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
        nj__class_rates_update(&s->class_rates, &s->view, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
        tidy_store(s, nj_os_clock_gettime_ns(CLOCK_MONOTONIC));
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
