/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/telemetry_dict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_telemetry.h>

#include "dpdk/compat.h"
#include "telem/counters.h"

struct rte_tel_data *nj__telemetry_add_dict(struct rte_tel_data *d, const char *name_fmt, ...)
{
    struct rte_tel_data *one = rte_tel_data_alloc();
    char name[RTE_TEL_MAX_STRING_LEN];
    va_list ap;

    if (!one)
        return NULL;
    va_start(ap, name_fmt);
    vsnprintf(name, sizeof name, name_fmt, ap);
    va_end(ap);
    rte_tel_data_start_dict(one);
    rte_tel_data_add_dict_container(d, name, one, 0);
    return one;
}

void nj__telemetry_add_numbers(struct rte_tel_data *d, const struct nj__telemetry_row *rows,
                               size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].value != UINT64_MAX)
            rte_tel_data_add_dict_uint(d, rows[i].name, rows[i].value);
}

void nj__telemetry_add_counters(const struct nj_mgmt_view *v, uint32_t from, uint32_t to,
                                const nj_counter *which, size_t n, struct rte_tel_data *d)
{
    for (size_t k = 0; k < n; k++) {
        uint64_t sum = 0;
        for (uint32_t i = from; i < to; i++)
            sum += nj_counter_read(&v->shard[i]->counters, which[k]);
        rte_tel_data_add_dict_uint(d, nj_counter_info[which[k]].name, sum);
    }
}

bool nj__telemetry_parse_shards(const struct nj_mgmt_view *v, const char *params, uint32_t *from,
                                uint32_t *to)
{
    char *end = NULL;
    unsigned long i = params ? strtoul(params, &end, 10) : 0;

    *from = (uint32_t)i;
    *to = params ? (uint32_t)i + 1 : v->n_shards;
    return !params || (end != params && *end == '\0' && i < v->n_shards);
}
