/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of DPDK's telemetry socket (rte_telemetry). answer_*.c answer them. */
#include "mgmt/telemetry.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_telemetry.h>

#include "base/assert.h"
#include "mgmt/answers.h"
#include "mgmt/document.h"
#include "mgmt/telemetry_document.h"

#define PREFIX "/nightjar/"

/* Callbacks of rte_telemetry have no context argument and run on its threads. The lock keeps the
 * server allocated while one runs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct nj_mgmt_view *attached;

/* Limits of rte_telemetry, without the terminating zero. */
#define HELP_MAX    127u
#define COMMAND_MAX 55u

static int answer(const char *cmd, const char *params, struct rte_tel_data *to)
{
    const struct nj__command *c = nj__command_find(cmd + strlen(PREFIX));
    struct nj__document doc;

    if (!c)
        return -EINVAL;
    struct nj__doc root =
        nj__document_begin(&doc, c->is_list ? NJ__DOCUMENT_TELEMETRY_LIST : NJ__DOCUMENT_TELEMETRY);
    pthread_mutex_lock(&lock);
    bool ok = !attached || c->answer(attached, params, root);
    pthread_mutex_unlock(&lock);
    if (ok)
        nj__document_to_telemetry(&doc, to);
    nj__document_end(&doc);
    return ok ? 0 : -EINVAL;
}

static void register_commands(void)
{
    for (size_t i = 0; i < nj__n_commands; i++) {
        const struct nj__command *c = &nj__commands[i];
        char name[COMMAND_MAX + 1], help[HELP_MAX + 1];
        int n_name = snprintf(name, sizeof name, PREFIX "%s", c->name);
        int n_help = snprintf(help, sizeof help, "%s %s", c->help, c->telemetry_params);
        NJ_ASSERT(n_name < (int)sizeof name && n_help < (int)sizeof help);
        rte_telemetry_register_cmd(name, answer, help); /* copies both */
    }
}

void nj_telemetry_attach(const struct nj_mgmt_view *view)
{
    static bool is_registered; /* rte_telemetry cannot unregister */

    pthread_mutex_lock(&lock);
    bool first = !is_registered;
    is_registered = true;
    attached = view;
    pthread_mutex_unlock(&lock);
    if (!first)
        return;
    nj__documents_init();
    register_commands();
}
