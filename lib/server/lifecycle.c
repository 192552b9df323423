/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions that create, start, reload, stop and free a server; nj_server_run() adds
 * signals. See docs/embedding.md. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/handled_signals.h"
#include "base/set_error.h"
#include "base/page_alloc.h"
#include "base/standard_descriptors.h"
#include "config/config_abi_copy.h"
#include "config/eal_args.h"
#include "dpdk/eal.h"
#include "dpdk/eal_output_capture.h"
#include "log/crash_report.h"
#include "log/log.h"
#include "log/log_writer.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "sched/fiber.h"
#include "server/ready_lines.h"
#include "server/server_internal.h"
#include "telem/counters_conn.h"
#include "telem/counters_http.h"
#include "telem/counters_packet.h"
#include "telem/counters_tcp.h"

const char *nj_strerror(int error)
{
    static const char *const text[] = {
        [0] = "success",
        [-NJ_ERR_WOULD_BLOCK] = "the call would block, which is not allowed here",
        [-NJ_ERR_CANCELLED] = "the stream or its connection has ended",
        [-NJ_ERR_TIMEOUT] = "timed out",
        [-NJ_ERR_MEMORY] = "out of memory",
        [-NJ_ERR_INVALID] = "invalid argument, or not possible at this moment",
        [-NJ_ERR_TOO_LARGE] = "too large",
    };
    bool is_known = error <= 0 && error > -(int)NJ_ARRAY_LEN(text);

    return is_known ? text[-error] : "unknown error";
}

/* --- one server per process ------------------------------------------------------------------- */

/* Telemetry, the sink of log lines and the lcores are per process, so that one server at a time
 * runs. */
static enum use { UNUSED, IN_USE, STUCK } _Atomic use;

static int why_in_use(enum use was, char *why, size_t n)
{
    if (was == STUCK)
        return nj_set_error(
            why, n,
            "handlers of an earlier server did not return and still use its memory and "
            "ports: no other server can start in this process");
    return nj_set_error(
        why, n,
        "a process runs one server at a time, and another one was started: end it with "
        "nj_server_free() first");
}

static int claim_process(char *why, size_t n)
{
    enum use was = UNUSED;

    return atomic_compare_exchange_strong(&use, &was, IN_USE) ? 0 : why_in_use(was, why, n);
}

static struct nj_output_wait output_wait;

static void release_process(const struct nj_server *s)
{
    if (!s->is_stuck)
        nj_log_set_sink((struct nj_log_sink){NULL, NULL});
    if (!s->is_program && !s->is_stuck)
        (void)nj_log_writer_stop(nj_output_wait_left_ms(&output_wait));
    atomic_store(&use, s->is_stuck ? STUCK : UNUSED);
}

/* --- life cycle of a server ------------------------------------------------------------------- */

static void free_server(struct nj_server *s)
{
    sem_destroy(&s->supervisor.stops);
    pthread_mutex_destroy(&s->reload_lock);
    nj_settings_free(&s->settings);
    nj_presets_free(&s->presets);
    nj_pages_unmap(s, sizeof *s);
}

/* Logs the errors of the configuration file. `why` gets the first one as well, except in
 * nj_server_run(), which prints both to the same place. */
static void log_config_errors(const struct nj_server *s, char *why, size_t why_bytes)
{
    const struct nj_diags *faults = &s->settings.faults;

    if (!faults->text)
        return;
    nj_log_lines_to_sink((struct nj_log_sink){s->given.log, s->given.log_ctx}, NJ_LEVEL_ERROR,
                         faults->text);
    int n_first = (int)strcspn(faults->text, "\n");
    if (s->is_program)
        return;
    if (faults->n == 1)
        nj_set_error(why, why_bytes, "%.*s", n_first, faults->text);
    else
        nj_set_error(why, why_bytes, "%.*s (the log has %u more errors)", n_first, faults->text,
                     faults->n - 1);
}

static int read_config(struct nj_server *s, int eal_argc, char **eal_argv,
                       const struct nj_server_config *config, char *why, size_t why_bytes)
{
    if (eal_argc > 0 && !eal_argv)
        return nj_set_error(why, why_bytes, "eal_argv is NULL");
    for (int i = 0; i + 1 < eal_argc; i++)
        if (strcmp(eal_argv[i], "--") == 0)
            return nj_set_error(
                why, why_bytes,
                "%s: nightjar's options are not EAL arguments: set them in the configuration",
                eal_argv[i + 1]);
    if (nj_config_convert_version(&s->given, config, why, why_bytes) != 0)
        return -1;
    int rc = nj_settings_from_config(&s->settings, &s->given, why, why_bytes);
    log_config_errors(s, why, why_bytes);
    if (rc == 0 && nj_eal_args_expand(&s->presets, s->settings.policy, eal_argc, eal_argv, why,
                                      why_bytes) != 0) {
        nj_policy_file_name_source(s->settings.policy, &s->given, why, why_bytes);
        return -1;
    }
    return rc == 0 ? nj_privileges_init(&s->privileges, s->given.drop_privileges,
                                        s->settings.config->user, why, why_bytes)
                   : rc;
}

static struct nj_server *create_server(bool is_program, int eal_argc, char **eal_argv,
                                       const struct nj_server_config *config, char *why,
                                       size_t why_bytes)
{
    struct nj_server *s = nj_pages_map(sizeof *s, 0); /* contains a key */

    if (!s) {
        nj_set_error(why, why_bytes, "out of memory");
        return NULL;
    }
    sem_init(&s->supervisor.stops, 0, 0);
    pthread_mutex_init(&s->reload_lock, NULL);
    s->is_program = is_program;
    s->output_wait = &output_wait;
    if (read_config(s, eal_argc, eal_argv, config, why, why_bytes) == 0)
        return s;
    free_server(s);
    return NULL;
}

struct nj_server *nj_server_new(int eal_argc, char **eal_argv,
                                const struct nj_server_config *config, char *why, size_t why_bytes)
{
    char unwanted[2];

    if (!why) {
        why = unwanted;
        why_bytes = sizeof unwanted;
    }
    return create_server(false, eal_argc, eal_argv, config, why, why_bytes);
}

/* Threads inherit the signal mask of the thread that starts them, and signals belong to the
 * program's threads. Synchronous signals (SIGSEGV) stay unblocked. So do real-time signals: net_tap
 * uses one for each queue, and if all threads block it, its queue overflows and SIGIO ends the
 * process. */
static void block_signals(sigset_t *was)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < NJ_ARRAY_LEN(faults); i++)
        sigdelset(&set, faults[i]);
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        sigdelset(&set, i);
    pthread_sigmask(SIG_SETMASK, &set, was);
}

/* What is to be there before the process opens, logs and starts anything else. The EAL prints to
 * descriptors 1 and 2, and panics without them. A callback for log lines needs no writer. */
static int prepare_output(bool has_callback, char *why, size_t n)
{
    sigset_t mask;

    output_wait = (struct nj_output_wait){0};
    if (nj_standard_descriptors_open() < 0)
        return nj_set_error(why, n,
                            "a descriptor of 0 to 2 is closed, and /dev/null cannot be opened in "
                            "its place: %s",
                            strerror(errno));
    if (has_callback)
        return 0;
    block_signals(&mask);
    int rc = nj_log_writer_start();
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return rc == 0
               ? 0
               : nj_set_error(why, n, "the writer of log lines does not start: %s", strerror(rc));
}

int nj_server_start(struct nj_server *s, char *why, size_t why_bytes)
{
    sigset_t mask;

    if (!s)
        return nj_set_error(why, why_bytes, "the server is NULL");
    if (s->n_steps_up > 0 || atomic_load(&s->supervisor.is_over))
        return nj_set_error(why, why_bytes, "this server was started before");
    if (claim_process(why, why_bytes) != 0)
        return -1;
    if (prepare_output(s->given.log, why, why_bytes) != 0) {
        release_process(s);
        return -1;
    }
    nj_log_set_sink((struct nj_log_sink){s->given.log, s->given.log_ctx});
    nj__service_open(&s->service, s->given.service_notify);
    block_signals(&mask);
    bool ok = nj__server_bring_up(s);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (ok) {
        if (s->is_program) /* no other thread runs on a CPU that an lcore polls on */
            pthread_setaffinity_np(pthread_self(), sizeof s->place.housekeeping,
                                   &s->place.housekeeping);
        nj__ready_log_advice(&s->ports, &s->place, &s->cpus);
        nj__ready_log(&s->ports, &s->shards, &s->settings);
        return 0;
    }
    nj__service_failed(&s->service, s->why);
    release_process(s);
    return nj_set_error(why, why_bytes, "%s", s->why);
}

int nj_server_reload(struct nj_server *s)
{
    return s && nj__server_reload(s, NULL) ? 0 : NJ_ERR_INVALID;
}

int nj_server_change_limits(struct nj_server *s, const char *change, char *why, size_t why_bytes)
{
    char unwanted[2];

    if (!why) {
        why = unwanted;
        why_bytes = sizeof unwanted;
    }
    if (!s || !change)
        return nj_set_error(why, why_bytes, "%s is NULL", s ? "change" : "the server");
    if (!s->policy.policies)
        return nj_set_error(why, why_bytes, "the server was not started");
    return nj__policy_change_limits(&s->policy, change, why, why_bytes) ? 0 : -1;
}

void nj_server_stop(struct nj_server *s)
{
    if (s)
        sem_post(&s->supervisor.stops);
}

int nj_server_wait(struct nj_server *s)
{
    if (!s)
        return NJ_ERR_INVALID;
    nj__server_tear_down_serving(s);
    return s->is_stuck ? NJ_ERR_TIMEOUT : 0;
}

int nj_server_free(struct nj_server *s)
{
    if (!s)
        return 0;
    bool was_started = s->n_steps_up > 0;
    if (was_started) {
        nj_server_stop(s);
        nj__server_tear_down_serving(s);
        nj__server_tear_down(s);
        nj_service_notify_close(&s->service.notify);
        release_process(s);
    }
    if (s->is_stuck)
        return NJ_ERR_TIMEOUT;
    free_server(s);
    return 0;
}

void nj_server_read_stats(const struct nj_server *s, struct nj_server_stats *stats)
{
    if (!stats)
        return;
    if (!s) {
        size_t size_bytes = stats->size_bytes;
        memset(stats, 0, size_bytes);
        if (size_bytes >= sizeof stats->size_bytes)
            stats->size_bytes = size_bytes;
        return;
    }
    struct nj_server_stats all = {
        .size_bytes = stats->size_bytes,
        .requests = nj_mgmt_sum_counter(&s->view, NJ_C_requests),
        .responses = nj_mgmt_sum_counter(&s->view, NJ_C_responses),
        .status_2xx = nj_mgmt_sum_counter(&s->view, NJ_C_status_2xx),
        .status_3xx = nj_mgmt_sum_counter(&s->view, NJ_C_status_3xx),
        .status_4xx = nj_mgmt_sum_counter(&s->view, NJ_C_status_4xx),
        .status_5xx = nj_mgmt_sum_counter(&s->view, NJ_C_status_5xx),
        .refused = nj_mgmt_sum_counter(&s->view, NJ_C_request_refused),
        .body_bytes = nj_mgmt_sum_counter(&s->view, NJ_C_body_bytes),
        .connections = nj_mgmt_sum_counter(&s->view, NJ_C_connections),
        .accepted = nj_mgmt_sum_counter(&s->view, NJ_C_tcp_accepted),
        .retransmitted = nj_mgmt_sum_counter(&s->view, NJ_C_tcp_retransmit),
        .rx_packets = nj_mgmt_sum_counter(&s->view, NJ_C_rx_packets),
        .tx_packets = nj_mgmt_sum_counter(&s->view, NJ_C_tx_packets),
        .rx_bytes = nj_mgmt_sum_counter(&s->view, NJ_C_rx_bytes),
        .tx_bytes = nj_mgmt_sum_counter(&s->view, NJ_C_tx_bytes),
        .rx_drops = nj_mgmt_sum_counter_kind(&s->view, NJ_KIND_RX_DROP),
        .tx_drops = nj_mgmt_sum_counter_kind(&s->view, NJ_KIND_TX_DROP),
        .access_lost = nj_mgmt_sum_counter(&s->view, NJ_C_access_lost),
    };
    size_t known = all.size_bytes < sizeof all ? all.size_bytes : sizeof all;

    memset(stats, 0, all.size_bytes);
    memcpy(stats, &all, known);
}

void nj_eal_cleanup(void)
{
    if (atomic_load(&use) == UNUSED)
        nj_eal_fini();
    else
        nj_log(NJ_LEVEL_ERROR, "nj_eal_cleanup() did nothing: a server uses the EAL");
}

/* --- nj_server_run() -------------------------------------------------------------------------- */

/* Each large file that is being sent needs an open descriptor. */
static void raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* without it, requests beyond the limit get 503 */
    }
}

/* Called in a signal handler. */
static const char *running_route(const void *address, bool *overflowed)
{
    const struct nj_task_class *c = nj_task_class_running();

    *overflowed = nj_fiber_guard_hit(address);
    return c ? c->name : NULL;
}

void nj_install_crash_report(void)
{
    nj_crash_report_install(running_route);
}

static void block_handled_signals(sigset_t *set)
{
    nj_handled_signals_fill(set);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log at the maximum file size counts as a full disk */
}

static void handle_signal(struct nj_server *s, int number)
{
    if (number == SIGUSR1 && s->access) {
        nj_access_log_reopen(s->access);
    } else if (number == SIGHUP) {
        nj_server_reload(s);
        if (!s->given.policy_file && !s->tls.has_tls)
            nj_log(NJ_LEVEL_INFO, "SIGHUP: no configuration file (--config) to reload%s",
                   s->access ? "; the access log was reopened" : "");
    } else if (number == SIGUSR2) { /* nginx starts a new binary; its users may expect that */
        nj_log(NJ_LEVEL_INFO, "SIGUSR2 does nothing: to upgrade, start another process with the "
                              "same --upgrade-socket; SIGUSR1 opens the access log again");
    } else if (nj_handled_signal_stops(number)) {
        nj_server_stop(s);
    }
}

/* Handles signals until the server has ended. Without a signal it ends only after an upgrade. */
static void wait_for_signals(struct nj_server *s, const sigset_t *set)
{
    const struct timespec tick = {.tv_nsec = (long)(20 * NJ_MS)};
    bool is_stopping = s->settings.config->upgrade_socket;

    while (!atomic_load_explicit(&s->supervisor.is_over, memory_order_acquire)) {
        int number = is_stopping ? sigtimedwait(set, NULL, &tick) : sigwaitinfo(set, NULL);
        is_stopping = is_stopping || nj_handled_signal_stops(number);
        handle_signal(s, number);
    }
}

/* Not to the program's callback: DPDK logs on lcores, too. */
static void log_dpdk(const char *line, bool is_problem, bool is_captured)
{
    static bool is_blocked; /* of captured lines, on the main thread */
    char text[NJ_LOG_LINE_BYTES];

    /* With NJ_EAL_VERBOSE there may be more lines than the queue takes. */
    if (is_captured && !is_blocked && nj_log_writer_n_waiting() > NJ_LOG_LINES / 2)
        is_blocked = !nj_log_writer_wait(NJ_OUTPUT_WAIT_MS);
    snprintf(text, sizeof text, "DPDK: %s", line);
    nj_log_lines_to_sink((struct nj_log_sink){NULL, NULL},
                         is_problem ? NJ_LEVEL_WARNING : NJ_LEVEL_INFO, text);
}

static int run(int eal_argc, char **eal_argv, const struct nj_server_config *config,
               const sigset_t *set)
{
    char why[512] = "";
    struct nj_server *s = create_server(true, eal_argc, eal_argv, config, why, sizeof why);

    if (!s) {
        nj_log(NJ_LEVEL_ERROR, "%s", why);
        return NJ_EXIT_USAGE;
    }
    bool reports_crashes = s->given.crash_report;
    if (reports_crashes)
        nj_install_crash_report();
    if (s->settings.config->root)
        raise_fd_limit();
    int rc = nj_server_start(s, why, sizeof why);
    if (rc == 0)
        wait_for_signals(s, set);
    else
        nj_log(NJ_LEVEL_ERROR, "%s", why);
    int failed = s->has_bad_files ? NJ_EXIT_USAGE : NJ_EXIT_FAILED;
    if (nj_server_free(s) != 0) {
        (void)nj_log_writer_stop(nj_output_wait_left_ms(&output_wait));
        _exit(NJ_EXIT_FAILED); /* a handler that did not return may still use memory and the EAL */
    }
    nj_eal_cleanup();
    if (reports_crashes)
        nj_crash_report_remove();
    return rc == 0 ? 0 : failed;
}

int nj_server_run(int eal_argc, char **eal_argv, const struct nj_server_config *config)
{
    char why[512] = "";
    sigset_t set;
    enum use was = atomic_load(&use);

    if (was != UNUSED) { /* the running server keeps its signals and its EAL */
        why_in_use(was, why, sizeof why);
        nj_log(NJ_LEVEL_ERROR, "%s", why);
        return NJ_EXIT_FAILED;
    }
    block_handled_signals(&set);
    if (prepare_output(false, why, sizeof why) != 0) {
        nj_log(NJ_LEVEL_ERROR, "%s", why);
        return NJ_EXIT_FAILED;
    }
    nj_eal_log_redirect(log_dpdk);
    int status = run(eal_argc, eal_argv, config, &set);
    (void)nj_log_writer_stop(nj_output_wait_left_ms(&output_wait));
    return status;
}
