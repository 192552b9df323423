/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a server, shared by bring-up, supervision and telemetry. Internal to lib/server. */
#ifndef NJ_SERVER_SERVER_INTERNAL_H
#define NJ_SERVER_SERVER_INTERNAL_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "config/worker_placement.h"
#include "log/abuse_log.h"
#include "log/access_log.h"
#include "log/lcore_watchdog.h"
#include "mgmt/view.h"
#include "privilege/privileges.h"
#include "server/class_rates.h"
#include "server/ports.h"
#include "server/policy_in_force.h"
#include "server/service_notify.h"
#include "server/shards.h"
#include "server/tls_identity.h"
#include "store/file_reader.h"
#include "store/file_store.h"
#include "threads/worker_pool.h"
#include "upgrade/upgrade.h"

/* Where the name of the root leads to. */
enum nj_root_state {
    NJ_ROOT_SERVED,
    NJ_ROOT_MISSING,
    NJ_ROOT_CLOSED,    /* to the folder that is served, which the user may not read any more */
    NJ_ROOT_ELSEWHERE, /* to another folder, which the server may not read */
};

struct nj_server {
    struct nj_server_config given; /* by the program, as of this version */
    struct nj_settings settings;
    struct nj_presets presets; /* with the EAL's arguments */
    char why[512];             /* the reason when a step of bring-up fails */
    size_t n_steps_up;         /* completed steps of bring-up */
    bool is_program;           /* runs as nj_server_run(): owns signals, stderr and the EAL's end */
    bool is_stuck;             /* a thread did not end; the memory that it uses stays allocated */
    struct nj_privileges privileges;

    cpu_set_t cpus; /* allowed CPUs of the process before the EAL pinned its threads */
    struct nj_file_store *store;
    struct nj_placement place;
    struct nj_worker_pool *workers;          /* run OS_BLOCKING tasks and file operations */
    struct nj_file_reader *reader;           /* reads large files; NULL: workers do */
    struct nj_task tidy;                     /* supervisor only: the task that tidies the store */
    bool tidying;                            /* `tidy` was submitted to the workers */
    enum nj_root_state root_seen, root_told; /* by the last check, and by the log; `tidy` only */
    uint32_t root_checks;                    /* that saw `root_seen`, in a row; `tidy` only */
    nj_ns tidy_at;                           /* time of the next submission */
    struct nj_access_log *access;
    struct nj_tls_identity tls;
    struct nj_policy_in_force policy;

    struct nj_shards shards;
    struct nj_ports ports;

    struct nj_upgrade upgrade; /* main thread until the supervisor starts, then the supervisor's */
    _Atomic bool is_stopping;  /* written by the supervisor */
    nj_ns deadline;            /* supervisor only: of open connections, after nj_server_stop() */

    pthread_t supervisor;
    sem_t stops;                             /* one post per call of nj_server_stop() */
    _Atomic bool is_over;                    /* the supervisor has ended */
    struct nj_watchdog watch[NJ_SHARDS_MAX]; /* supervisor only */
    struct nj_abuse_log abuse_log;           /* supervisor only */
    struct nj_service_notify service;        /* its watchdog: supervisor only */
    nj_ns service_began_at;                  /* supervisor only; 0: not yet */
    nj_ns state_announced_at;                /* the same */
    _Atomic bool is_yielding;                /* another process takes new connections */
    _Atomic bool is_ready_announced;         /* to the service manager */
    bool is_stuck_announced;                 /* supervisor only */
    struct nj_class_rates class_rates;
    struct nj_mgmt_view view; /* while the shards exist */
};

/* bring_up_tear_down.c: run all steps of bring-up. On error undoes the completed steps and returns
 * false, with the reason in s->why. */
bool nj__server_bring_up(struct nj_server *s);
/* Tear down: the first stops handlers and serving, the second the rest. Both stop early if a thread
 * is stuck. */
void nj__server_tear_down_serving(struct nj_server *s);
void nj__server_tear_down(struct nj_server *s);

/* upgrade_steps.c. Steps of bring-up, around those that nj_upgrade_contact() and its successors
 * name. */
bool nj__server_contact_running(struct nj_server *s);
bool nj__server_agree_upgrade(struct nj_server *s);
bool nj__server_listen_for_upgrade(struct nj_server *s);
bool nj__server_begin_upgrade(struct nj_server *s);
void nj__server_close_upgrade(struct nj_server *s);

/* lifecycle.c: milliseconds that the end of this process may still wait for its outputs; a wait has
 * taken so long. Main thread. */
uint32_t nj__server_output_wait_ms(void);
void nj__server_output_waited(nj_ns taken);

/* give_up_privileges.c: give up user, capabilities and system calls, and check that the new user
 * can read the files of the configuration. On failure some threads may have given up theirs. */
bool nj__server_drop_privileges(struct nj_server *s);
/* Threads of a later server of this process get no list of allowed calls. */
void nj__server_forget_filter(struct nj_server *s);
/* Does code of the program run on lcores? What it calls and opens is not known. */
static inline bool nj__server_has_own_code(const struct nj_server_config *c)
{
    return c->n_routes > 0 || c->lcore_init || c->lcore_fini;
}

/* root_watch.c: log an error if the root's name leads to no folder that the server may read. May
 * block. Any thread. */
void nj__server_check_root(const struct nj_server *s);
/* The same once a second, if it is so in two calls; and when it ends. With a store. One thread at a
 * time that may block. */
void nj__server_watch_root(struct nj_server *s);

/* supervise.c: reap the task that tidies the store, if it is done. The supervisor, or after its end
 * the thread that stops the workers. */
void nj__server_reap_tidy_task(struct nj_server *s);

/* supervise.c: waits for nj_server_stop(), drives the phases, prints the live line. For
 * pthread_create(). */
void *nj__server_supervise(void *server);
/* supervise.c: log a line for each port and the ready line. */
void nj__server_log_ready(const struct nj_server *s);
#define NJ_READY_BYTES 1536u
/* supervise.c: the addresses and what is served: "ready: http://192.0.2.1:80/ serves /srv". Cut. */
void nj__server_format_ready(const struct nj_server *s, char *text, size_t n);

/* service_state.c: messages to the service manager, if service_notify is set. The first, before
 * the start; any thread. */
void nj__server_service_open(struct nj_server *s);
/* READY when the addresses can be used, then the watchdog's messages. The supervisor, once per
 * tick, after the lcores were checked. */
void nj__server_service_tick(struct nj_server *s);
/* Another process takes new connections of this one, or does so no longer. The supervisor. */
void nj__server_service_yields(struct nj_server *s, bool yields);
/* The supervisor, when the drain begins, which takes at most `drain`. */
void nj__server_service_stopping(struct nj_server *s, nj_ns drain, uint64_t n_open);
/* Around a reload. Any thread. */
void nj__server_service_reloading(struct nj_server *s);
void nj__server_service_reloaded(struct nj_server *s, bool ok);
/* The start failed; nothing is sent any more. */
void nj__server_service_failed(struct nj_server *s, const char *why);

#endif
