/* SPDX-License-Identifier: BSD-3-Clause */
/* A server, made of the parts that lifecycle.c and bring_up.c join. Internal to lib/server.
 *
 * "Main thread", here and in the headers of the parts, of lib/mgmt and of lib/upgrade: the thread
 * that starts, waits for or frees the server; one at a time (nightjar/server.h). */
#pragma once

#include <pthread.h>
#include <sched.h>

#include "config/worker_placement.h"
#include "log/access_log.h"
#include "log/output_wait.h"
#include "mgmt/view.h"
#include "privilege/privileges.h"
#include "server/file_serving.h"
#include "server/management.h"
#include "server/supervisor.h"
#include "threads/worker_pool.h"

struct nj_server {
    struct nj_server_config given; /* by the program, as of this version */
    struct nj_settings settings;
    struct nj_presets presets; /* with the EAL's arguments */
    char why[512];             /* the reason when a step of bring-up fails */
    size_t n_steps_up;         /* completed steps of bring-up */
    bool is_program;           /* runs as nj_server_run(): owns signals, stderr and the EAL's end */
    bool has_bad_files;        /* certificates, keys: the same start fails again */
    bool is_stuck;             /* a thread did not end; the memory that it uses stays allocated */
    struct nj_output_wait *output_wait; /* of the process */

    cpu_set_t cpus; /* allowed CPUs of the process before the EAL pinned its threads */
    struct nj_placement place;
    struct nj_privileges privileges;
    struct nj_shards shards;
    struct nj_ports ports;
    pthread_mutex_t reload_lock; /* one nj_server_reload() at a time */
    struct nj_policy_in_force policy;
    struct nj_tls_identity tls;
    struct nj_file_serving files;
    struct nj_store_housekeeping housekeeping;
    struct nj_worker_pool *workers; /* run OS_BLOCKING tasks and file operations */
    struct nj_access_log *access;   /* NULL: none */
    struct nj_service service;
    struct nj_mgmt_reloads reloads;
    struct nj_mgmt_view view; /* while the shards exist */
    struct nj_management management;
    struct nj_upgrade upgrade; /* main thread until the supervisor starts, then the supervisor's;
                                  a worker looks at its `file` */
    struct nj_supervisor supervisor;
};

/* bring_up.c: run all steps of bring-up. On error undoes the completed steps and returns
 * false, with the reason in s->why. */
bool nj__server_bring_up(struct nj_server *s);
/* Tear down: the first stops handlers and serving, the second the rest. Both stop early if a thread
 * is stuck. */
void nj__server_tear_down_serving(struct nj_server *s);
void nj__server_tear_down(struct nj_server *s);

/* reload.c: nj_server_reload(). False: there are errors, which are logged, and nothing has changed;
 * *errors gets their lines, for the caller to free(3), if `errors` is not NULL. `server`: a struct
 * nj_server. */
bool nj__server_reload(void *server, char **errors);
/* Of struct nj_mgmt_hooks: reads what a reload reads, and applies nothing. */
bool nj__server_diff(void *server, nj_config_change_fn *see, void *of, char **errors,
                     char **restart);
enum nj_access_format nj__access_format(const struct nj_server_config *config);

/* upgrade_steps.c. Steps of bring-up, around those that nj_upgrade_contact() and its successors
 * name. */
bool nj__server_contact_running(struct nj_server *s);
bool nj__server_agree_upgrade(struct nj_server *s);
bool nj__server_listen(struct nj_server *s); /* and for management */
bool nj__server_begin_upgrade(struct nj_server *s);

/* give_up_privileges.c: give up user, capabilities and system calls, and check that the new user
 * can read the files of the configuration. On failure some threads may have given up theirs. */
bool nj__server_drop_privileges(struct nj_server *s);
