/* SPDX-License-Identifier: BSD-3-Clause */
/* `version`, and `server`: the process, its last reload, and its certificates. */
#include <time.h>

#include <rte_version.h>

#include <nightjar/server.h>

#include "base/relaxed_atomics.h"
#include "mgmt/answers.h"
#include "mgmt/view.h"
#include "tls/cert_dates.h"

bool nj__answer_version(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    time_t at = (time_t)v->started_s;
    char text[32] = "";
    struct tm tm;

    if (gmtime_r(&at, &tm))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    nj__doc_text(d, "version", nj_version());
    nj__doc_text(d, "dpdk", rte_version());
    nj__doc_text(d, "started", text);
    return true;
}

static void add_certificates(const struct nj_tls_server_context *context, struct nj__doc list)
{
    struct nj_tls_dates dates;

    for (uint32_t i = 0; nj_tls_dates_of_file(context, i, &dates); i++) {
        struct nj__doc one = nj__doc_item(list, i);
        nj__doc_text(one, "kind", dates.kind);
        nj__doc_text(one, "file", dates.path);
        nj__doc_int(one, "valid_from_s", dates.from_s);
        if (dates.until_s != INT64_MAX)
            nj__doc_int(one, "valid_until_s", dates.until_s);
    }
}

bool nj__answer_server(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    if (params)
        return false;
    struct nj_tls_server_context *context = v->tls ? nj_tls_current_context_take(v->tls) : NULL;
    nj__doc_text(d, "version", nj_version());
    nj__doc_text(d, "dpdk", rte_version());
    nj__doc_text(d, "phase", nj_mgmt_phase_name(nj_load_relaxed(&v->lcore[0].control->phase)));
    nj__doc_int(d, "started_s", v->started_s);
    nj__doc_int(d, "reloaded_s", nj_load_relaxed(&v->reloads->good_at_s));
    nj__doc_bool(d, "reload_failed", nj_load_relaxed(&v->reloads->has_failed));
    struct nj__doc list = nj__doc_list(d, "certificates", "certificate");
    if (context) {
        add_certificates(context, list);
        nj_tls_server_context_put(context);
    }
    return true;
}
