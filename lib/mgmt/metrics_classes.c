/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of the policy. A class has at most NJ_CLASS_NAME_MAX bytes of name, and no other has the
 * same. */
#include "mgmt/metrics_parts.h"

struct classes {
    const struct nj_mgmt_view *v;
    struct nj__metrics *m;
};

static void add_classes(void *ctx, const struct nj_policy *p)
{
    static const struct nj__metric families[] = {
        {"class_requests", NJ__METRIC_COUNTER, "requests of a class that were accepted"},
        {"class_refused", NJ__METRIC_COUNTER,
         "requests of a class that were refused by the policy or a cap"},
        {"class_body_bytes", NJ__METRIC_COUNTER, "bytes of response bodies of a class"},
        {"class_throttled_seconds", NJ__METRIC_COUNTER,
         "time that responses of a class waited for credit, summed"},
        {"class_open", NJ__METRIC_GAUGE, "responses of a class that are in progress"},
        {"class_waiting", NJ__METRIC_GAUGE, "responses of a class that wait for credit"},
    };
    static const struct nj__metric version = {
        "policy_version", NJ__METRIC_GAUGE,
        "number of the policy in force: each reload, change and time of day adds one"};
    const struct classes *c = ctx;
    struct nj__metric_row row[NJ_CLASSES_MAX];

    for (uint32_t i = 0; i < p->n_classes; i++) {
        struct nj_mgmt_class_sum s = nj_mgmt_sum_class(c->v, p->classes[i].slot);
        row[i] = (struct nj__metric_row){
            {{"class", p->classes[i].name}},
            {s.requests, s.refused, s.bytes, s.throttled_ns, s.open, s.waiting}};
    }
    nj__metrics_add_table(c->m, families, NJ_ARRAY_LEN(families), row, p->n_classes);
    nj__metrics_begin(c->m, &version);
    nj__metrics_add(c->m, p->version, NULL);
}

void nj__metrics_classes(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    struct classes c = {v, m};

    nj_policies_call_with_current(v->policies, add_classes, &c);
}
