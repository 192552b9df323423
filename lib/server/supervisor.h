/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor: a thread that drives the phases of the lcores, watches lcores and ports, and does
 * what is done once per tick, second or minute. It never touches a packet. */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "server/class_rates.h"
#include "server/lcore_watch.h"
#include "server/policy_in_force.h"
#include "server/ports.h"
#include "server/service_state.h"
#include "server/store_housekeeping.h"
#include "server/tls_identity.h"
#include "upgrade/upgrade.h"

/* What it supervises. */
struct nj_supervised {
    const struct nj_server_config *config;
    const struct nj_mgmt_view *view;
    struct nj_shards *shards;
    struct nj_ports *ports;
    struct nj_policy_in_force *policy;
    struct nj_tls_identity *tls;
    struct nj_store_housekeeping *housekeeping;
    struct nj_service *service;
    struct nj_upgrade *upgrade;
    bool is_program; /* owns standard error, for --live */
};

struct nj_supervisor {
    sem_t stops;             /* one post per call of nj_server_stop() */
    _Atomic nj_ns drain;     /* of --drain-timeout */
    _Atomic bool is_over;    /* the thread has ended */
    _Atomic nj_ns ticked_at; /* of CLOCK_MONOTONIC; 0: not yet */
    pthread_t thread;
    /* Only the thread uses what follows; any thread reads the rates. */
    struct nj_supervised of;
    struct nj_class_rates class_rates;
    struct nj_lcore_watch lcore_watch;
    bool is_stopping; /* after nj_server_stop() */
    nj_ns deadline;   /* of open connections, then */
};

/* Use the --drain-timeout of that configuration. Any thread. */
void nj__supervisor_set_drain(struct nj_supervisor *v, const struct nj_server_config *config);
/* Start the thread on these CPUs. The caller has initialised v->stops. `of` is copied; what it
 * points to must outlive the thread, which the caller joins after nj_server_stop() or when
 * v->is_over. Returns 0 or an error number. Main thread. */
int nj__supervisor_start(struct nj_supervisor *v, const struct nj_supervised *of,
                         const cpu_set_t *cpus);
