/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration that was parsed and validated. */
#ifndef NJ_CONFIG_SETTINGS_H
#define NJ_CONFIG_SETTINGS_H

#include <sched.h>

#include <nightjar/server.h>

#include "base/types.h"
#include "config/policy_file.h"
#include "http/files/file_server_options.h"
#include "http/handlers/route_table.h"
#include "net/flow_steering.h"
#include "wire/iface.h"

/* Exit statuses, as --help tells them: the configuration is wrong, so that another try will fail as
 * this one did; or the world was. */
#define NJ_EXIT_FAILED 1
#define NJ_EXIT_USAGE  2

/* A port, and what is said of its link. */
struct nj_settings_port {
    int id;                /* DPDK's number; -1: the only one there is */
    cpu_set_t lcores;      /* that poll it; empty: its part of those that no port names */
    struct nj_iface iface; /* all but what the port says: MAC address and MTU */
    bool slaac;            /* --addr auto6 */
};

struct nj_settings {
    const struct nj_server_config *given;  /* by the command line */
    const struct nj_server_config *config; /* &effective */
    struct nj_server_config effective;     /* what was given, and what the policy file adds */
    uint32_t n_ports;
    struct nj_settings_port port[NJ_SERVER_PORTS_MAX];
    bool has_rss_key;          /* else it is drawn at the start */
    struct nj_rss_key rss_key; /* secret */
    struct nj_routes *routes;
    struct nj_site_options site;
    struct nj_mime_table *mime;
    struct nj_policy_file *policy;
    struct nj_faults faults; /* of the policy file, for stderr, before `why` */
};

/* 0, or -1 with what is wrong and what to do in `why`, and more of it in s->faults, which
 * nj_settings_free() frees in any case. Changes nothing in the world. */
int nj_settings_read(struct nj_settings *s, const struct nj_server_config *config, char *why,
                     size_t why_bytes);
/* The same, of a configuration that may lack what a server needs to start: addresses, a folder. */
int nj_settings_check(struct nj_settings *s, const struct nj_server_config *config, char *why,
                      size_t why_bytes);
void nj_settings_free(struct nj_settings *s);

/* settings_link.c: ports, addresses, gateways, routes, neighbours, VLANs, the key of RSS. */
int nj__settings_read_link(struct nj_settings *s, char *why, size_t why_bytes);

/* settings_files.c: what a folder is served like. */
int nj__settings_read_files(struct nj_settings *s, char *why, size_t why_bytes);
int nj__settings_read_mime(struct nj_settings *s, char *why, size_t why_bytes);

#endif
