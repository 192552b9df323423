/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_telemetry commands:
 *   /nightjar/stats   every counter, summed over the shards
 *   /nightjar/shards    per shard: lcore, steering, cycles, packets, drops by reason, what it holds
 *   /nightjar/shards,N  the same of one
 *   /nightjar/memory    what connections are made of: sizes, how many are in use, how many were
 *   /nightjar/memory,N  the same of one shard
 *   /nightjar/ewyk        how handlers were run, by route; who waits
 *   /nightjar/ewyk,N      of one route, and how each shard takes it now
 *   /nightjar/ewyk,reset  from zero
 *   /nightjar/workers     the pool of workers: tasks that run and wait, and who looks for them
 *   /nightjar/limits      the policy in force: limits of the server and of its classes
 *   /nightjar/limits,class=video,rate=5MiB/s,...   change it, for what is under way, too; without a
 *                         class the server's total; until the policy file is read again
 *   /nightjar/classes     what each class asked for and got, and gets now
 *   /nightjar/clients,N   the N clients with most bytes; 10
 *   /nightjar/clients,N,by=streams   with most streams open, or connections
 *   /nightjar/shaping     how responses are paced; with ,N on one shard
 *   /nightjar/files       what is kept of files, and how often that helped
 *   /nightjar/latency     how long responses took; with ,N of one shard
 *   /nightjar/abuse       protection that acted: reason, how often, against whom
 */
#ifndef NJ_SERVER_TELEMETRY_H
#define NJ_SERVER_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "telem/counters.h"

struct nj_server;
struct rte_tel_data;

/* Make the commands answer for this server; NULL makes them answer with nothing. */
void nj_telemetry_attach(const struct nj_server *server);

/* Which shards a command is about: all, or the one its parameter names. */
bool nj__telemetry_parse_shards(const struct nj_server *s, const char *params, uint32_t *from,
                                uint32_t *to);

/* A dictionary within this one, by that name, for the caller to fill; NULL: there is no memory. */
struct rte_tel_data *nj__telemetry_add_dict(struct rte_tel_data *d, const char *name_fmt, ...)
    NJ_PRINTF(2, 3);
/* These counters, summed over shards from..to-1, by their names. */
void nj__telemetry_add_counters(const struct nj_server *s, uint32_t from, uint32_t to,
                                const enum nj_counter *which, size_t n, struct rte_tel_data *d);

/* A number by its name. UINT64_MAX: there is none, and it is left out. */
struct nj__telemetry_row {
    const char *name;
    uint64_t value;
};
void nj__telemetry_add_rows(struct rte_tel_data *d, const struct nj__telemetry_row *rows, size_t n);

/* The answers of telemetry_*.c: into a dictionary. False: the parameters make no sense. */
bool nj__telemetry_ewyk(const struct nj_server *s, const char *params, struct rte_tel_data *d);
bool nj__telemetry_workers(const struct nj_server *s, const char *params, struct rte_tel_data *d);
bool nj__telemetry_limits(const struct nj_server *s, const char *params, struct rte_tel_data *d);
bool nj__telemetry_classes(const struct nj_server *s, const char *params, struct rte_tel_data *d);
bool nj__telemetry_clients(const struct nj_server *s, const char *params, struct rte_tel_data *d);
bool nj__telemetry_shaping(const struct nj_server *s, const char *params, struct rte_tel_data *d);
bool nj__telemetry_files(const struct nj_server *s, const char *params, struct rte_tel_data *d);
bool nj__telemetry_abuse(const struct nj_server *s, const char *params, struct rte_tel_data *d);
bool nj__telemetry_latency(const struct nj_server *s, const char *params, struct rte_tel_data *d);

#endif
