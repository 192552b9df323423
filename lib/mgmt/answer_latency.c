/* SPDX-License-Identifier: BSD-3-Clause */
/* `latency`: percentiles of response times, of steps, and of time in TLS handshakes per step. */
#include <stddef.h>

#include <rte_cycles.h>

#include "mgmt/answers.h"
#include "mgmt/answer_parts.h"

/* `hz`: units of the histogram per second; 0: unknown, without an EAL. */
static uint64_t us(uint64_t value, uint64_t hz)
{
    return hz > 0 ? (uint64_t)((double)value * 1e6 / (double)hz) : 0;
}

/* Percentiles are upper bounds of buckets: at most an eighth too high (telem/histogram.h). */
static void add_histogram(const struct nj_histogram *h, const char *name, uint64_t hz,
                          struct nj__doc d)
{
    static const struct {
        const char *name;
        double share;
    } shown[] = {{"p50_us", 0.5}, {"p90_us", 0.9}, {"p99_us", 0.99}, {"p999_us", 0.999}};
    uint64_t n = nj_histogram_count(h);
    struct nj__doc one = nj__doc_dict(d, name);

    nj__doc_uint(one, "count", n);
    nj__doc_uint(one, "mean_us", n > 0 ? us(h->sum_ns / n, hz) : 0);
    for (size_t i = 0; i < NJ_ARRAY_LEN(shown); i++)
        nj__doc_uint(one, shown[i].name, us(nj_histogram_quantile(h, shown[i].share), hz));
    nj__doc_uint(one, "max_us", us(h->max_ns, hz));
}

bool nj__answer_latency(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    const struct {
        const char *name;
        size_t at;
        uint64_t hz;
    } shown[] = {{"ttfb", offsetof(struct nj_shard, conns.txns.ttfb), NJ_SEC},
                 {"total", offsetof(struct nj_shard, conns.txns.total), NJ_SEC},
                 {"throttled", offsetof(struct nj_shard, conns.txns.throttled), NJ_SEC},
                 {"step", offsetof(struct nj_shard, stages.step), rte_get_tsc_hz()},
                 {"tls_step", offsetof(struct nj_shard, conns.tls_step_cycles), rte_get_tsc_hz()},
                 {"tls_task", offsetof(struct nj_shard, conns.tls_task_ns), NJ_SEC}};
    uint32_t from, to;

    if (!nj__answer_parse_shards(v, params, &from, &to))
        return false;
    for (size_t k = 0; k < NJ_ARRAY_LEN(shown); k++) {
        struct nj_histogram sum = {0};
        for (uint32_t i = from; i < to; i++) {
            const char *shard = (const char *)v->shard[i];
            nj_histogram_merge(&sum, (const struct nj_histogram *)(shard + shown[k].at));
        }
        add_histogram(&sum, shown[k].name, shown[k].hz, d);
    }
    return true;
}
