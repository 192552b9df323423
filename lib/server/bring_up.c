/* SPDX-License-Identifier: BSD-3-Clause */
/* Bring-up and tear-down as a table of steps: an error undoes the steps that are complete, in
 * reverse order. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/page_alloc.h"
#include "base/relaxed_atomics.h"
#include "conn/conn_tls.h"
#include "dpdk/eal.h"
#include "log/log.h"
#include "log/log_writer.h"
#include "mgmt/telemetry.h"
#include "mgmt/capture.h"
#include "mgmt/trace.h"
#include "mgmt/transfers.h"
#include "rights/syscall_filter.h"
#include "rights/thread_file_rights.h"
#include "server/ready_lines.h"
#include "server/server_internal.h"
#include "threads/os_clock.h"

#define HALF_OPEN_MAX   4096u
#define TIME_WAIT       (60 * NJ_SEC) /* 2 MSL with the MSL of 30 s that stacks use */
#define TLS_TASKS_MAX   4u /* handshakes that run at once; 1 if workers share the lcores' CPUs */
#define NO_RANDOM       "cannot get random numbers from the system"
#define STOP_TIMEOUT_MS 2000u /* for tasks on workers at shutdown */

/* --- the steps ----------------------------------------------------------------------------- */

/* CPUs that any thread of the process may use. The EAL has pinned its own threads, and possibly
 * this one. */
static void usable_cpus(cpu_set_t *cpus)
{
    DIR *tasks = nj_eal_is_up() ? opendir("/proc/self/task") : NULL;
    cpu_set_t one;

    sched_getaffinity(0, sizeof *cpus, cpus);
    for (const struct dirent *e; tasks && (e = readdir(tasks));)
        if (sched_getaffinity(atoi(e->d_name), sizeof one, &one) == 0)
            CPU_OR(cpus, cpus, &one);
    if (tasks)
        closedir(tasks);
}

static bool start_eal(struct nj_server *s)
{
    const struct nj_presets *eal = &s->presets;
    const char *tap = nj_eal_find_existing_tap(eal->argc, eal->argv);
    char cause[384];
    cpu_set_t mine;

    if (tap && !nj_upgrade_shares_ports(&s->upgrade)) {
        snprintf(s->why, sizeof s->why,
                 "tap device %.*s: an interface of that name exists already; choose another iface=",
                 (int)strcspn(tap, ","), tap);
        return false;
    }
    if (eal->summary)
        nj_log(NJ_LEVEL_INFO, "%s", eal->summary);
    sched_getaffinity(0, sizeof mine, &mine);
    int rc = nj_eal_init(eal->argc, eal->argv, cause, sizeof cause);
    /* The shard of the main lcore gets a thread of its own. This thread returns to the program. */
    sched_setaffinity(0, sizeof mine, &mine);
    if (rc != 0)
        snprintf(s->why, sizeof s->why, "EAL: %s (the arguments before -- are DPDK's)", cause);
    return rc == 0;
}

static bool prepare_eal(struct nj_server *s)
{
    usable_cpus(&s->cpus);
    if (!nj_eal_is_up() && s->presets.argc > 0)
        return start_eal(s);
    if (!nj_eal_is_up())
        snprintf(s->why, sizeof s->why,
                 "the EAL is not initialised: give its arguments, or call rte_eal_init() before");
    else if (s->presets.argc > 0)
        nj_log(NJ_LEVEL_INFO, "the EAL is initialised already: its arguments are not used");
    return nj_eal_is_up();
}

static void close_upgrade(struct nj_server *s)
{
    nj_upgrade_close(&s->upgrade);
}

/* Threads of a later server of this process get no list of allowed calls. */
static void undo_drop_privileges(struct nj_server *s)
{
    nj__management_close(&s->management);
    nj_syscall_allow_list_forget();
}

static bool open_lcores(struct nj_server *s)
{
    return nj__shards_open_lcores(&s->shards, s->why, sizeof s->why) == 0;
}

static void close_lcores(struct nj_server *s)
{
    nj__shards_close_lcores(&s->shards);
}

static bool open_ports(struct nj_server *s)
{
    return nj__ports_open(&s->ports, &s->settings, &s->presets, &s->shards,
                          nj_upgrade_shares_ports(&s->upgrade), !s->is_program, s->why,
                          sizeof s->why) == 0;
}

static void close_ports(struct nj_server *s)
{
    nj__ports_close(&s->ports, nj_upgrade_shares_ports(&s->upgrade), !s->is_program);
}

static bool open_policy(struct nj_server *s)
{
    return nj__policy_open(&s->policy, &s->settings, s->why, sizeof s->why) == 0;
}

static void close_policy(struct nj_server *s)
{
    nj__policy_close(&s->policy);
}

static bool open_tls(struct nj_server *s)
{
    s->has_bad_files = nj__tls_identity_open(&s->tls, &s->settings, s->why, sizeof s->why) != 0;
    return !s->has_bad_files;
}

static void close_tls(struct nj_server *s)
{
    nj__tls_identity_close(&s->tls);
}

static bool open_store(struct nj_server *s)
{
    return nj__file_serving_open(&s->files, s->settings.config,
                                 nj_privileges_keep_root(&s->privileges), s->why,
                                 sizeof s->why) == 0;
}

static void close_store(struct nj_server *s)
{
    nj__file_serving_close(&s->files);
}

static bool place_threads(struct nj_server *s)
{
    uint32_t cpu[NJ_SHARDS_MAX];

    for (uint32_t i = 0; i < s->shards.n; i++)
        cpu[i] = s->shards.lcore[i].cpu;
    nj_placement_place_workers(cpu, s->shards.n, s->settings.config->workers,
                               nj__ports_common_numa_node(&s->ports), &s->cpus, &s->place);
    nj_log_writer_set_cpus(&s->place.housekeeping);
    return true;
}

static uint32_t tls_tasks(const struct nj_server *s)
{
    return s->place.no_spare_cpu ? 1 : TLS_TASKS_MAX;
}

static bool start_workers(struct nj_server *s)
{
    struct nj_worker_pool_config c = {
        .n_shards = s->shards.n + 1, /* the last one is the supervisor's */
        .kind = {[NJ_WORKER_HANDLERS] = {.n_max = s->place.n_workers,
                                         .tasks_max = NJ_TASKS_OUT_MAX,
                                         .prepare = nj_file_rights_restore},
                 [NJ_WORKER_FILES] = {.n_max = s->files.store ? NJ_FILE_TASKS_MAX : 0,
                                      .tasks_max = NJ_FILE_JOBS_MAX},
                 [NJ_WORKER_TLS] = {.n_max = s->tls.has_tls ? tls_tasks(s) : 0,
                                    .tasks_max = NJ_TLS_TASKS_OUT_MAX}},
        .affinity = s->place.worker,
        .n_affinity = s->place.n_workers,
        .housekeeping = &s->place.housekeeping,
        .eal = true,
        .wakeups = s->shards.wakeup,
        .n_wakeups = s->shards.n,
    };
    int rc = nj_worker_pool_start(&c, &s->workers);
    if (rc != 0)
        snprintf(s->why, sizeof s->why, "cannot start the workers: %s", strerror(-rc));
    else
        s->housekeeping = (struct nj_store_housekeeping){
            .store = s->files.store,
            .workers = nj_worker_pool_ops(s->workers, s->shards.n, NJ_WORKER_FILES),
            .upgrade_socket = &s->upgrade.file,
            .management = &s->management.sockets,
            .is_yielding = &s->service.is_yielding,
            .root = {.root = s->settings.config->root,
                     .store = s->files.store,
                     .privileges = &s->privileges},
        };
    return rc == 0;
}

/* If a later step of bring-up failed, the workers still run here. */
static void stop_workers(struct nj_server *s)
{
    if (nj_worker_pool_stop(s->workers, STOP_TIMEOUT_MS) > 0)
        return;
    nj__store_housekeeping_reap(&s->housekeeping);
    nj_worker_pool_free(s->workers);
}

static bool start_reader(struct nj_server *s)
{
    return nj__file_serving_start_reader(&s->files, s->settings.config->file_reads, &s->shards,
                                         &s->place.housekeeping, s->why, sizeof s->why) == 0;
}

static void stop_reader(struct nj_server *s)
{
    if (nj__file_serving_stop_reader(&s->files, STOP_TIMEOUT_MS) == 0)
        nj_file_reader_free(s->files.reader);
}

/* UNIX time on the clock of the shards, in nanoseconds. */
static int64_t wall_ns(void *shards)
{
    const struct nj_shards *s = shards;

    return s->wall_s_at_zero * (int64_t)NJ_SEC + (int64_t)nj_tsc_clock_now(&s->clock);
}

static bool open_access_log(struct nj_server *s)
{
    const struct nj_server_config *config = s->settings.config;
    struct nj_access_log_config c = {
        .path = config->access_log,
        .format = nj__access_format(config),
        .n_shards = s->shards.n,
        .affinity = &s->place.housekeeping,
        .eal = true,
        .wall_ns = wall_ns,
        .wall_ctx = &s->shards,
    };
    return !c.path || nj_access_log_open(&c, &s->access, s->why, sizeof s->why) == 0;
}

/* Runs after the shards have written their last records. */
static void close_access_log(struct nj_server *s)
{
    struct nj_access_counts counts;

    if (!s->access)
        return;
    uint32_t wait_ms = nj_min_u32(nj_output_wait_left_ms(s->output_wait), NJ_ACCESS_STOP_MS);
    nj_ns began = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
    bool has_ended = nj_access_log_close(s->access, wait_ms, &counts);
    nj_output_wait_add(s->output_wait, nj_os_clock_gettime_ns(CLOCK_MONOTONIC) - began);
    s->is_stuck =
        s->is_stuck || (!has_ended && !s->is_program); /* nj_server_run() exits after this */
    s->access = NULL;
    s->view.access = NULL;
    if (counts.n_lost > 0)
        nj_log(NJ_LEVEL_WARNING, "access log: %lu lines written, %s%lu requests not logged",
               (unsigned long)counts.n_written, has_ended ? "" : "about ",
               (unsigned long)counts.n_lost);
}

static uint32_t log_stuck_fibers(const struct nj_server *s)
{
    uint32_t n_stuck = 0;

    for (uint32_t i = 0; i < s->shards.n; i++) {
        const char *route;
        uint32_t n = nj_conns_stuck_fibers(&s->shards.shard[i]->conns, &route);
        n_stuck += n;
        if (n > 0)
            nj_log(NJ_LEVEL_ERROR,
                   "lcore %u: %u handlers (%s) did not return after cancellation; exiting anyway",
                   s->shards.lcore[i].id, n, route);
    }
    return n_stuck;
}

/* Runs before the shards are freed, because tasks work on their requests. Memory that a handler
 * which does not return may use cannot be freed. */
static void stop_handlers(struct nj_server *s)
{
    uint32_t n_stuck = nj_worker_pool_stop(s->workers, STOP_TIMEOUT_MS);
    if (n_stuck > 0)
        nj_log(NJ_LEVEL_ERROR, "%u task%s on workers did not return within %u ms; exiting anyway",
               n_stuck, n_stuck == 1 ? "" : "s", STOP_TIMEOUT_MS);
    uint32_t n_reads = nj__file_serving_stop_reader(&s->files, STOP_TIMEOUT_MS);
    if (n_reads > 0)
        nj_log(NJ_LEVEL_ERROR, "the disk did not answer within %u ms; exiting anyway",
               STOP_TIMEOUT_MS);
    if (log_stuck_fibers(s) + n_stuck + n_reads == 0)
        return;
    s->is_stuck = true;
    close_access_log(s); /* writes the pending records, in bounded time */
}

static bool random_bytes(void *out, size_t n)
{
    return getrandom(out, n, 0) == (ssize_t)n;
}

static nj_ns read_clock(void *clock)
{
    return nj_tsc_clock_now(clock);
}

/* Rare, from an lcore: a route moved to the workers, or back; an address conflict. */
static void log_line(void *log, const char *line)
{
    nj_lcore_log_put(log, line);
}

static void init_lcore(struct nj_server *s, uint32_t i)
{
    const struct nj_server_port *p = nj__ports_find_by_shard(&s->ports, i);
    struct nj_lcore *l = &s->shards.lcore[i];

    l->shard = s->shards.shard[i];
    l->clock = &s->shards.clock;
    l->control = &s->shards.control;
    l->end = &s->shards.endpoint[i];
    l->idle = nj__idle_mode(s->settings.config);
    l->waker = &s->shards.wakeup[i];
    l->fds = &s->shards.fd_waits[i];
    l->rx = nj_dpdk_port_rx_queue_of_shard(&p->dev, i - p->first);
    l->init = s->given.lcore_init;
    l->fini = s->given.lcore_fini;
    l->hook_ctx = s->given.lcore_ctx;
    l->confine = nj_syscall_allow_list_load;
}

/* The part of shard `i` in its port. */
static void join_port(struct nj_server *s, uint32_t i, struct nj_shard_config *c)
{
    struct nj_server_port *p = nj__ports_find_by_shard(&s->ports, i);

    c->conns.number = i;
    c->index = i - p->first;
    c->n_shards = p->n_shards;
    c->steering = p->dev.steering;
    c->reta_size = p->dev.reta_size;
    c->rss_key = p->dev.rss_key;
    c->iface = p->settings->iface;
    c->iface.mac = p->dev.mac;
    c->iface.mtu = p->dev.mtu;
    c->slaac = p->settings->slaac;
    c->no_dad = nj_upgrade_shares_ports(&s->upgrade);
    c->frames_reach_both = p->dev.frames_reach_both;
    c->tx = p->dev.tx;
    c->held_max = p->dev.held_max;
    c->tx_pool = p->dev.tx_pool[c->index];
    c->frag_table = p->dev.frags[c->index];
    nj_shard_rings_bind_ops(&p->rings, &s->shards.endpoint[i], c->index, &s->shards.wakeup[i],
                            &c->ops);
}

/* What telemetry may change: hooks of the view. */
static bool change_limits(void *server, const char *change, char *why, size_t why_bytes)
{
    struct nj_server *s = server;

    return nj__policy_change_limits(&s->policy, change, why, why_bytes);
}

static void reset_handler_counters(void *server)
{
    struct nj_server *s = server;

    for (uint32_t i = 0; i < s->shards.n; i++)
        nj_store_relaxed(&s->shards.shard[i]->conns.handlers.reset, true);
}

static bool reopen_log(void *server)
{
    struct nj_server *s = server;

    if (s->access)
        nj_access_log_reopen(s->access);
    return s->access != NULL;
}

static void fill_view(struct nj_server *s)
{
    struct nj_clients *clients = nj_shape_clients(s->policy.shape);

    s->view = (struct nj_mgmt_view){
        .clock = &s->shards.clock,
        .n_ports = s->ports.n,
        .n_shards = s->shards.n,
        .port_stats_lock = &s->ports.stats_lock,
        .lcore = s->shards.lcore,
        .lcore_log = s->shards.log,
        .workers = s->workers,
        .store = s->files.store,
        .reader = s->files.reader,
        .access = s->access,
        .policies = s->policy.policies,
        .clients = clients,
        .other_clients = nj_clients_overflow_client(clients),
        .class_rate = s->supervisor.class_rates.rate,
        .routes = s->settings.routes,
        .fibers_max = s->settings.config->fibers_max,
        .started_s = time(NULL),
        .config = s->settings.config,
        .reloads = &s->reloads,
        .tls = s->tls.has_tls ? &s->tls.current : NULL,
        .supervised_at = &s->supervisor.ticked_at,
        .unpolled = s->supervisor.lcore_watch.unpolled,
        .ready_stall = &s->management.ready_stall,
        .is_stopping = &s->service.is_stopping,
        .is_yielding = &s->service.is_yielding,
        .hooks = {s, change_limits, reset_handler_counters, nj__server_reload, reopen_log,
                  nj__server_diff},
    };
    nj_store_relaxed(&s->reloads.good_at_s, s->view.started_s);
    for (uint32_t k = 0; k < s->ports.n; k++) {
        const struct nj_server_port *p = &s->ports.port[k];
        s->view.port[k] = (struct nj_mgmt_port){&p->dev, &p->last_sample, p->first, p->n_shards};
    }
    for (uint32_t i = 0; i < s->shards.n; i++)
        s->view.shard[i] = s->shards.shard[i];
}

static bool create_shards(struct nj_server *s)
{
    const struct nj_settings *set = &s->settings;
    nj_ns now = nj_tsc_clock_now(&s->shards.clock);
    struct nj_shard_config c = {
        .listeners = set->listeners,
        .conns.tls = s->tls.has_tls ? &s->tls.current : NULL,
        .conns_max = set->config->conns_max,
        .half_open_max = HALF_OPEN_MAX,
        .time_wait = TIME_WAIT,
        .newreno = set->config->newreno,
        .ecn = !set->config->no_ecn,
        .conns.preface_timeout = set->http.preface_timeout,
        .conns.idle_timeout = set->http.idle_timeout,
        .conns.wall_s_at_zero = s->shards.wall_s_at_zero,
        .conns.routes = set->routes,
        .conns.http = &set->http,
        .conns.fibers_max = set->config->fibers_max,
        .conns.strategy = set->config->strategy,
    };
    c.conns.shape = s->policy.shape;
    c.conns.policy = nj_policies_initial(s->policy.policies);
    if (!random_bytes(&c.ndp_key, sizeof c.ndp_key) ||
        !random_bytes(&c.conns.client_key, sizeof c.conns.client_key)) {
        snprintf(s->why, sizeof s->why, NO_RANDOM);
        return false;
    }
    for (uint32_t i = 0; i < s->shards.n; i++) {
        join_port(s, i, &c);
        if (s->files.store) {
            struct nj_worker_ops workers = nj_worker_pool_ops(s->workers, i, NJ_WORKER_FILES);
            struct nj_worker_ops reader = {0};
            if (s->files.reader)
                reader = nj_file_reader_ops_of_shard(s->files.reader, i);
            c.conns.ops.files =
                nj_file_client_init(&s->shards.file_client[i], &workers, &reader, s->files.store);
        }
        c.conns.ops.workers = nj_worker_pool_ops(s->workers, i, NJ_WORKER_HANDLERS);
        c.conns.ops.waits = nj_fd_waits_ops(&s->shards.fd_waits[i]);
        if (s->tls.has_tls)
            c.conns.ops.tls_workers = nj_worker_pool_ops(s->workers, i, NJ_WORKER_TLS);
        c.conns.ops.clock = read_clock;
        c.conns.ops.cycles = rte_rdtsc;
        c.conns.ops.clock_ctx = &s->shards.clock;
        c.conns.ops.log = log_line;
        c.conns.ops.log_ctx = &s->shards.log[i];
        if (s->access)
            c.conns.access = nj_access_log_port(s->access, i);
        s->shards.shard[i] = nj_pages_map(sizeof *s->shards.shard[i], 0); /* contains keys */
        if (!random_bytes(&c.flow_key, sizeof c.flow_key) ||
            !random_bytes(&c.isn_key, sizeof c.isn_key) || !random_bytes(&c.seed, sizeof c.seed) ||
            !s->shards.shard[i] || !nj_shard_init(s->shards.shard[i], &c, now)) {
            snprintf(s->why, sizeof s->why, "not enough memory for shard %u", i);
            return false;
        }
        init_lcore(s, i);
    }
    explicit_bzero(&c, sizeof c); /* contains keys */
    nj__policy_set_shards(&s->policy, &s->shards);
    fill_view(s);
    s->view.transfers = nj__shards_open_transfers(&s->shards);
    s->view.capture = nj_mgmt_capture_new(&s->view);
    s->view.trace = nj_mgmt_trace_new(&s->view);
    if (s->view.transfers && s->view.capture && s->view.trace)
        return true;
    snprintf(s->why, sizeof s->why, "not enough memory for management");
    return false;
}

static void free_shards(struct nj_server *s)
{
    nj_mgmt_capture_free(s->view.capture);
    nj_mgmt_trace_free(s->view.trace);
    nj_mgmt_transfers_free(s->view.transfers);
    s->view = (struct nj_mgmt_view){0};
    for (uint32_t i = 0; i < s->shards.n; i++) {
        if (!s->shards.shard[i])
            continue;
        nj_shard_fini(s->shards.shard[i]);
        nj_pages_unmap(s->shards.shard[i], sizeof *s->shards.shard[i]);
        s->shards.shard[i] = NULL;
    }
}

static bool attach_telemetry(struct nj_server *s)
{
    nj_telemetry_attach(&s->view);
    return true;
}

static void detach_telemetry(struct nj_server *s)
{
    (void)s;
    nj_telemetry_attach(NULL);
}

static void stop_lcores(struct nj_server *s)
{
    nj__shards_set_phase(&s->shards, NJ_PHASE_STOP);
    /* nj_server_run() cannot return before the lcores have. */
    uint32_t n =
        nj_lcores_wait(s->shards.lcore, s->shards.n, s->is_program ? UINT32_MAX : STOP_TIMEOUT_MS);
    for (uint32_t i = 0; n > 0 && i < s->shards.n; i++)
        if (atomic_load(&s->shards.lcore[i].state) != NJ_LCORE_IDLE)
            nj_log(NJ_LEVEL_ERROR, "lcore %u did not return from a handler within %u ms",
                   s->shards.lcore[i].id, STOP_TIMEOUT_MS);
    s->is_stuck |= n > 0;
}

static bool start_lcores(struct nj_server *s)
{
    enum nj_run_phase first = nj_upgrade_shares_ports(&s->upgrade) ? NJ_PHASE_TAKE : NJ_PHASE_RUN;

    atomic_store_explicit(&s->shards.control.phase, first, memory_order_release);
    if (nj_lcores_start_loops(s->shards.lcore, s->shards.n, s->why, sizeof s->why) == 0)
        return true;
    stop_lcores(s);
    return false;
}

static bool start_supervisor(struct nj_server *s)
{
    nj__ready_format(&s->ports, &s->settings, s->service.ready, sizeof s->service.ready);
    const struct nj_supervised of = {
        .config = s->settings.config,
        .view = &s->view,
        .shards = &s->shards,
        .ports = &s->ports,
        .policy = &s->policy,
        .tls = &s->tls,
        .housekeeping = &s->housekeeping,
        .service = &s->service,
        .upgrade = &s->upgrade,
        .is_program = s->is_program,
    };

    if (nj__management_start(&s->management, &s->view, &s->place.housekeeping, s->why,
                             sizeof s->why) != 0)
        return false;
    int rc = nj__supervisor_start(&s->supervisor, &of, &s->place.housekeeping);
    if (rc == 0)
        return true;
    snprintf(s->why, sizeof s->why, "cannot start the supervisor: %s", strerror(rc));
    nj__management_stop(&s->management);
    return false;
}

/* The management listener answers while connections are drained. */
static void join_supervisor(struct nj_server *s)
{
    pthread_join(s->supervisor.thread, NULL);
    nj__management_stop(&s->management);
}

static const struct step {
    bool (*up)(struct nj_server *);   /* NULL: nothing to do */
    void (*down)(struct nj_server *); /* called only if up() returned true */
    bool is_serving;                  /* nj__server_tear_down_serving() undoes it */
} steps[] = {
    {nj__server_contact_running, close_upgrade, false},
    {prepare_eal, NULL, false},
    {open_lcores, close_lcores, false},
    {open_store, close_store, false},
    {open_ports, close_ports, false},
    {open_policy, close_policy, false},
    {nj__server_agree_upgrade, NULL, false},
    {nj__server_drop_privileges, undo_drop_privileges, false},
    {nj__server_listen, NULL, false},
    {open_tls, close_tls, false},
    {place_threads, NULL, false},
    {start_workers, stop_workers, false},
    {start_reader, stop_reader, false},
    {open_access_log, close_access_log, false},
    {create_shards, free_shards, false},
    {NULL, stop_handlers, true},
    {attach_telemetry, detach_telemetry, true},
    {start_lcores, stop_lcores, true},
    {nj__server_begin_upgrade, NULL, true},
    {start_supervisor, join_supervisor, true},
};

static void undo_step(struct nj_server *s)
{
    const struct step *step = &steps[--s->n_steps_up];

    if (step->down)
        step->down(s);
}

void nj__server_tear_down_serving(struct nj_server *s)
{
    while (s->n_steps_up > 0 && steps[s->n_steps_up - 1].is_serving && !s->is_stuck)
        undo_step(s);
}

void nj__server_tear_down(struct nj_server *s)
{
    while (s->n_steps_up > 0 && !s->is_stuck)
        undo_step(s);
}

bool nj__server_bring_up(struct nj_server *s)
{
    while (s->n_steps_up < NJ_ARRAY_LEN(steps) &&
           (!steps[s->n_steps_up].up || steps[s->n_steps_up].up(s)))
        s->n_steps_up++;
    bool ok = s->n_steps_up == NJ_ARRAY_LEN(steps);
    if (!ok)
        nj__server_tear_down(s);
    return ok;
}
