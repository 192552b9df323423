/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/answer_parts.h"

#include <stdlib.h>

#include "telem/counters.h"

void nj__answer_add_numbers(struct nj__doc d, const struct nj__answer_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].value != UINT64_MAX)
            nj__doc_uint(d, rows[i].name, rows[i].value);
}

void nj__answer_add_counters(const struct nj_mgmt_view *v, uint32_t from, uint32_t to,
                             const nj_counter *which, size_t n, struct nj__doc d)
{
    for (size_t k = 0; k < n; k++) {
        uint64_t sum = 0;
        for (uint32_t i = from; i < to; i++)
            sum += nj_counter_read(&v->shard[i]->counters, which[k]);
        nj__doc_uint(d, nj_counter_info[which[k]].name, sum);
    }
}

bool nj__answer_parse_shards(const struct nj_mgmt_view *v, const char *params, uint32_t *from,
                             uint32_t *to)
{
    char *end = NULL;
    unsigned long i = params ? strtoul(params, &end, 10) : 0;

    *from = (uint32_t)i;
    *to = params ? (uint32_t)i + 1 : v->n_shards;
    return !params || (end != params && *end == '\0' && i < v->n_shards);
}
