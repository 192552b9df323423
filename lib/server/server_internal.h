/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a server, shared by bring-up, supervision and telemetry. Internal to lib/server. */
#ifndef NJ_SERVER_SERVER_INTERNAL_H
#define NJ_SERVER_SERVER_INTERNAL_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "config/placement.h"
#include "config/policy_reload.h"
#include "config/preset.h"
#include "config/settings.h"
#include "dpdk/lcore_loop.h"
#include "dpdk/port.h"
#include "dpdk/shard_rings.h"
#include "log/abuse_log.h"
#include "log/access_log.h"
#include "log/address_text.h"
#include "log/lcore_log.h"
#include "log/lcore_watchdog.h"
#include "server/port_watch.h"
#include "shard/shard.h"
#include "store/file_client.h"
#include "store/file_reader.h"
#include "store/file_store.h"
#include "threads/worker_pool.h"

/* What a class did in the last second; the supervisor writes, telemetry reads. */
struct nj_class_rate {
    _Atomic uint64_t requests_per_s, bytes_per_s;
    uint64_t requests, bytes; /* the supervisor's: when it looked */
};

/* A port, and the shards behind it: n_shards of the server's, from `first` on. */
struct nj_server_port {
    const struct nj_settings_port *settings;
    struct nj_dpdk_port dev;
    struct nj_fabric fabric;
    uint32_t first, n_shards;
    struct nj_port_watch watch;       /* the supervisor's */
    struct nj_address_news addresses; /* the supervisor's */
    struct nj_port_sight sight;       /* what it saw last, for telemetry; see port_lock */
};

struct nj_server {
    struct nj_server_config given; /* by the program, as of this version */
    struct nj_settings settings;
    struct nj_presets presets; /* with the EAL's arguments */
    char why[512];             /* the reason when a step of bring-up fails */
    size_t n_up;               /* steps that stand */
    bool is_program;           /* nj_server_run(): signals, stderr and the EAL's end are ours */
    bool is_stuck;             /* a thread did not end, and uses memory that was not freed */

    cpu_set_t cpus; /* where the process was allowed to run before the EAL pinned its threads */
    struct nj_clock clock;
    int64_t wall_s_at_zero; /* of that clock; UNIX time */
    struct nj_control control;
    struct nj_file_store *store;
    struct nj_place place;
    struct nj_workers *workers;    /* run OS_BLOCKING tasks, and what is done with files */
    struct nj_file_reader *reader; /* reads large files; NULL: workers do */
    struct nj_file_lane lane[NJ_SHARDS_MAX];
    struct nj_task tidy; /* of the store; the supervisor's */
    bool tidying;        /* `tidy` is with the workers */
    nj_ns tidy_at;       /* when it goes there next */
    struct nj_access_log *access;
    struct nj_policies *policies;
    struct nj_shape_shared *shape;

    uint32_t n_ports, n_shards;
    struct nj_server_port port[NJ_SERVER_PORTS_MAX];
    struct nj_fabric_end end[NJ_SHARDS_MAX];
    struct nj_shard *shard[NJ_SHARDS_MAX];
    struct nj_lcore lcore[NJ_SHARDS_MAX];
    struct nj_waker waker[NJ_SHARDS_MAX]; /* of each lcore */

    pthread_t supervisor;
    sem_t stops;                          /* how often nj_server_stop() was called */
    _Atomic bool is_over;                 /* the supervisor has ended */
    struct nj_watch watch[NJ_SHARDS_MAX]; /* the supervisor's */
    struct nj_notes notes[NJ_SHARDS_MAX]; /* for it */
    struct nj_abuse_log abuse_log;        /* the supervisor's */
    nj_ns port_seen_at;                   /* the supervisor's */
    pthread_mutex_t port_lock;            /* of port[].sight */
    struct nj_class_rate class_rate[NJ_CLASSES_MAX];
    nj_ns class_rates_at;
};

/* server.c: all steps of bring-up. False: the reason is in `why`, and what stood is down again. */
bool nj__server_up(struct nj_server *s);
/* Down again: until handlers have ended and nothing is served; and the rest, which is left as it is
 * when something did not end. */
void nj__server_end(struct nj_server *s);
void nj__server_down(struct nj_server *s);

/* Sums over all shards, of a counter and of a kind of counters. Any thread. */
uint64_t nj__server_count(const struct nj_server *s, enum nj_counter which);
uint64_t nj__server_sum(const struct nj_server *s, enum nj_counter_kind kind);

/* ports.c: the ports, each with its lcores, and the rings between the shards of each. */
bool nj__server_up_ports(struct nj_server *s);
void nj__server_down_ports(struct nj_server *s);
/* The port of a shard, by its number among all. */
const struct nj_server_port *nj__server_port_of(const struct nj_server *s, uint32_t shard);
/* The NUMA node of all ports; -1 when they have several, or none in particular. */
int nj__server_node(const struct nj_server *s);
/* Something was left for all lcores. */
void nj__server_wake(struct nj_server *s);
/* What lcores do without work. */
enum nj_idle nj__server_idle(const struct nj_server_config *config);

/* policy_attach.c: the policy before the shards, and their share in it. */
bool nj__server_up_policy(struct nj_server *s);
void nj__server_down_policy(struct nj_server *s);
/* When there are shards to tell. */
void nj__server_attach_policy(struct nj_server *s);
/* The supervisor's, once per tick. */
void nj__server_tend_policy(struct nj_server *s);
/* Read the policy file again. Any thread. False: it has errors, which are logged, or there is no
 * such file. */
bool nj__server_reload_policy(struct nj_server *s);

/* telemetry_shape.c: rates of classes, once per second. The supervisor. */
void nj__class_rates_turn(struct nj_server *s, nj_ns now);

/* supervise.c: the task that tidies the store is home, or is not. The supervisor; or whoever ends
 * the workers, when it has ended. */
void nj__server_tidied(struct nj_server *s);

/* supervise.c: waits for nj_server_stop(), drives the phases, prints the live line. For
 * pthread_create(). */
void *nj__server_supervise(void *server);
/* supervise.c: the phase of all lcores from now on. */
void nj__server_enter(struct nj_server *s, enum nj_phase phase);
/* supervise.c: a line for each port, and the one that says where it serves. */
void nj__server_tell_ready(const struct nj_server *s);

#endif
