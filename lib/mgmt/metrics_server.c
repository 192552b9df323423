/* SPDX-License-Identifier: BSD-3-Clause */
/* The process: its version, its configuration and its state, and its certificates. */
#include <rte_version.h>

#include "base/relaxed_atomics.h"
#include "mgmt/metrics_parts.h"
#include "tls/cert_dates.h"

static const char *yes_or_no(bool is)
{
    return is ? "yes" : "no";
}

static void add_infos(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric build = {"build", NJ__METRIC_INFO, "versions"},
                                   config = {"config", NJ__METRIC_INFO,
                                             "what was configured at the start"};
    static const char *const idle[] = {[NJ_IDLE_SLEEP] = "sleep",
                                       [NJ_IDLE_SPIN] = "spin",
                                       [NJ_IDLE_PAUSE] = "pause",
                                       [NJ_IDLE_INTERRUPT] = "interrupt"};
    const struct nj_server_config *c = v->config;
    const struct nj__metric_label build_labels[] = {
        {"version", nj_version()}, {"dpdk", rte_version()}, {0}};
    const struct nj__metric_label config_labels[] = {
        {"file", c->policy_file ? c->policy_file : ""},
        {"idle", idle[c->busy_poll ? NJ_IDLE_SPIN : c->idle]},
        {"congestion_control", c->newreno ? "newreno" : "cubic"},
        {"tls", yes_or_no(v->tls)},
        {"files", yes_or_no(v->store)},
        {"access_log", yes_or_no(v->access)},
        {0}};

    nj__metrics_begin(m, &build);
    nj__metrics_add(m, 1, build_labels);
    nj__metrics_begin(m, &config);
    nj__metrics_add(m, 1, config_labels);
}

/* All lcores have the same phase. */
static void add_phase(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric family = {"phase", NJ__METRIC_GAUGE,
                                             "1 for what the server does: start, run, in an "
                                             "upgrade keep, take or yield new connections, "
                                             "drain, abort, stop"};
    enum nj_run_phase now = nj_load_relaxed(&v->lcore[0].control->phase);

    nj__metrics_begin(m, &family);
    for (enum nj_run_phase i = NJ_PHASE_START; i <= NJ_PHASE_STOP; i++)
        nj__metrics_add(m, i == now,
                        (struct nj__metric_label[]){{"phase", nj_mgmt_phase_name(i)}, {0}});
}

void nj__metrics_server(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"start_time_seconds", NJ__METRIC_GAUGE, "UNIX time of the start"},
        {"reload_time_seconds", NJ__METRIC_GAUGE,
         "UNIX time at which the configuration in force was read"},
        {"reload_success", NJ__METRIC_GAUGE,
         "1 if the last reload succeeded, or there was none; 0 if it failed"}};
    const struct nj__metric_row row = {.value = {(uint64_t)v->started_s,
                                                 (uint64_t)nj_load_relaxed(&v->reloads->good_at_s),
                                                 !nj_load_relaxed(&v->reloads->has_failed)}};

    add_infos(v, m);
    nj__metrics_add_table(m, families, NJ_ARRAY_LEN(families), &row, 1);
    add_phase(v, m);
}

void nj__metrics_certificates(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric families[] = {
        {"tls_valid_from_time_seconds", NJ__METRIC_GAUGE,
         "UNIX time from which the certificates or the OCSP response of a file are valid"},
        {"tls_expiry_time_seconds", NJ__METRIC_GAUGE,
         "UNIX time at which the first certificate or the OCSP response of a file expires"}};
    struct nj_tls_server_context *context = v->tls ? nj_tls_current_context_take(v->tls) : NULL;
    struct nj_tls_dates d;

    for (size_t k = 0; k < NJ_ARRAY_LEN(families); k++) {
        nj__metrics_begin(m, &families[k]);
        for (uint32_t i = 0; context && nj_tls_dates_of_file(context, i, &d); i++) {
            int64_t at_s = k == 0 ? d.from_s : d.until_s;
            const struct nj__metric_label labels[] = {{"kind", d.kind}, {"file", d.path}, {0}};
            nj__metrics_add(m, at_s >= 0 && at_s != INT64_MAX ? (uint64_t)at_s : NJ__METRIC_NONE,
                            labels);
        }
    }
    if (context)
        nj_tls_server_context_put(context);
}
