/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of counters.def, summed over the shards: nightjar_NAME_total, and gauges
 * nightjar_NAME. Counters of one group are one family with a label. */
#include <string.h>

#include "mgmt/metrics_parts.h"
#include "telem/counters.h"

/*
 * `name` and the label's value, with _ between them, are the name of a counter. A counter that has
 * the name of a group is the sum of it, and has no sample. Of groups that a counter could belong
 * to, the first one counts.
 */
static const struct group {
    const char *label;
    struct nj__metric family;
} groups[] = {
    {"reason", {"drop_tx", NJ__METRIC_COUNTER, "packets built and not sent, by reason"}},
    {"reason", {"drop", NJ__METRIC_COUNTER, "packets received and dropped, by reason"}},
    {"reason",
     {"h2_abuse", NJ__METRIC_COUNTER,
      "HTTP/2 connections ended for abuse (ENHANCE_YOUR_CALM), by reason"}},
    {"code", {"status", NJ__METRIC_COUNTER, "responses, by the class of their status"}},
    {"reason", {"tls_failed", NJ__METRIC_COUNTER, "TLS handshakes that failed, by reason"}},
};

/* The label's value of a counter in this group: "" for its sum, NULL if it is not in the group. */
static const char *value_in(const struct group *g, const char *counter)
{
    size_t n = strlen(g->family.name);

    if (strncmp(counter, g->family.name, n) != 0 || (counter[n] != '_' && counter[n] != '\0'))
        return NULL;
    return counter + n + (counter[n] == '_');
}

static const struct group *group_of(nj_counter which)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(groups); i++)
        if (value_in(&groups[i], nj_counter_info[which].name))
            return &groups[i];
    return NULL;
}

static void add_group(const struct nj_mgmt_view *v, struct nj__metrics *m, const struct group *g)
{
    nj__metrics_begin(m, &g->family);
    for (nj_counter i = 0; i < NJ_COUNTERS_MAX; i++) {
        if (!nj_counter_info[i].name || group_of(i) != g)
            continue;
        const char *value = value_in(g, nj_counter_info[i].name);
        const struct nj__metric_label label[] = {{g->label, value}, {0}};
        if (*value)
            nj__metrics_add(m, nj_mgmt_sum_counter(v, i), label);
    }
}

void nj__metrics_counters(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(groups); i++)
        add_group(v, m, &groups[i]);
    for (nj_counter i = 0; i < NJ_COUNTERS_MAX; i++) {
        const struct nj_counter_info *info = &nj_counter_info[i];
        if (!info->name || group_of(i))
            continue;
        const struct nj__metric family = {
            info->name, info->kind == NJ_KIND_GAUGE ? NJ__METRIC_GAUGE : NJ__METRIC_COUNTER,
            info->what};
        nj__metrics_begin(m, &family);
        nj__metrics_add(m, nj_mgmt_sum_counter(v, i), NULL);
    }
}
