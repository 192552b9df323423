/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration that was parsed and validated. */
#pragma once

#include <sched.h>

#include <nightjar/server.h>

#include "base/listener.h"
#include "config/management_address.h"
#include "config/policy_file.h"
#include "http/handlers/route_table.h"
#include "http/http_options.h"
#include "http/proto/path.h"
#include "net/rss_flow_owner.h"
#include "privilege/needed_files.h"
#include "tls/server_context.h"
#include "wire/iface.h"

/* Exit statuses (see --help): a failure at run time, and an invalid configuration, which a restart
 * does not cure. */
#define NJ_EXIT_FAILED 1
#define NJ_EXIT_USAGE  2

/* A port and the settings of its link. */
struct nj_settings_port {
    int id;           /* port id of DPDK; -1: the only port */
    cpu_set_t lcores; /* lcores that poll it; empty: a share of the lcores that no port lists */
    struct nj_iface iface; /* without MAC address and MTU, which come from the device */
    bool slaac;            /* --addr auto6 */
};

#define NJ_MANAGEMENT_SOCKET "/run/nightjar/nightjar.sock" /* the default */

struct nj_settings {
    const struct nj_server_config *given;  /* from the command line */
    const struct nj_server_config *config; /* &effective */
    struct nj_server_config effective;     /* `given`, completed by the file */
    uint32_t n_ports;
    struct nj_settings_port port[NJ_SERVER_PORTS_MAX];
    bool has_rss_key;              /* else a random key is generated at start */
    struct nj_rss_key rss_key;     /* secret */
    struct nj_listeners listeners; /* of the policy's sections, or without any, of --listen and
                                      --tls-port, in this order */
    uint32_t n_management;
    struct nj_management_address management[NJ_SERVER_MANAGEMENT_MAX];
    struct nj_routes *routes;
    struct nj_http_options http;
    struct nj_mime_table *mime;
    struct nj_dotfiles dotfiles;
    struct nj_policy_file *policy;
    struct nj_diags faults; /* errors of the policy file, printed on stderr before `why` */
};

/* Returns 0, or -1 with the reason and the remedy in `why`, and further errors in s->faults, which
 * nj_settings_free() frees in both cases. No side effects. */
int nj_settings_from_config(struct nj_settings *s, const struct nj_server_config *config, char *why,
                            size_t why_bytes);
/* The same for a configuration that may lack addresses and a folder. */
int nj_settings_from_partial_config(struct nj_settings *s, const struct nj_server_config *config,
                                    char *why, size_t why_bytes);
void nj_settings_free(struct nj_settings *s);
/* Reads and validates the file again. The result has the values that a running server takes, and
 * for all else those of its `start`, which must live longer; `notes` gets a line for each key that
 * needs a restart. Free it by nj_settings_free() and free(). NULL with the reasons in `faults`, and
 * `why`, which is empty if `faults` has them all. */
struct nj_settings *nj_settings_read_again(const struct nj_settings *start, struct nj_diags *faults,
                                           struct nj_diags *notes, char *why, size_t why_bytes);

/* settings_check_tls.c: reads the files of TLS, of [tls] and of sites. `running` has the fields
 * that a running server adds: `unix_s`, `tickets`, `keylog`. Returns 0, or -1 with file, problem
 * and remedy in `why`. `*out`: the context, for nj_tls_server_context_put(), or NULL without TLS.
 */
int nj_settings_read_tls(const struct nj_settings *s, const struct nj_tls_server_config *running,
                         struct nj_tls_server_context **out, char *why, size_t why_bytes);
/* Are clients asked for certificates, by the server or by a site? */
bool nj_settings_ask_clients(const struct nj_settings *s);

/* settings_files.c: the files that the server opens as its user, in the order in which they are
 * checked. Returns their number. */
#define NJ_SETTINGS_FILES_MAX                                                                      \
    (11u + 3u * NJ_SERVER_TLS_CERTS_MAX + NJ_LIST_FILES_MAX + NJ_INI_FILES_MAX +                   \
     NJ_SITE_FOLDERS_MAX + NJ_SITE_FILES_MAX)
uint32_t nj_settings_list_files(const struct nj_settings *s,
                                struct nj_needed_file file[NJ_SETTINGS_FILES_MAX]);

/* settings_network.c: ports, addresses, gateways, routes, neighbours, VLANs, RSS key. */
int nj__settings_read_network(struct nj_settings *s, char *why, size_t why_bytes);

/* settings_listeners.c: where connections are accepted. After the network. */
int nj__settings_read_listeners(struct nj_settings *s, char *why, size_t why_bytes);

/* settings_management.c: the path and the addresses of the management listener. */
int nj__settings_read_management(struct nj_settings *s, char *why, size_t why_bytes);
/* The path of its Unix socket; NULL: none. Any thread. */
const char *nj_settings_management_socket(const struct nj_server_config *config);

/* settings_check_tls.c: options of TLS, and what sites have for it. Without certificates in [tls],
 * it gets those of [site default], else of the first site that has some. */
int nj__settings_check_tls(struct nj_settings *s, char *why, size_t why_bytes);

/* settings_http.c: HTTP and its files. */
int nj__settings_read_http(struct nj_settings *s, char *why, size_t why_bytes);
/* Options that shards copy, or that belong to keys which need a restart, stay those of the start.
 */
void nj__settings_keep_http(struct nj_http_options *http, const struct nj_http_options *start);
int nj__settings_load_mime_types(struct nj_settings *s, char *why, size_t why_bytes);
