/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges the counts of acts against clients of all shards and formats log lines from them. Each
 * reason is limited to one line per second, one whose clients may be forged to one per minute. */
#include "log/abuse_log.h"

#include <inttypes.h>
#include <stdio.h>

#include "log/address_text.h"
#include "telem/counters.h"

#define EVERY        NJ_SEC
/* The source of a SYN may be forged, and a flood of them may last for days. */
#define EVERY_FORGED (60 * NJ_SEC)

/* Is `v` of an earlier second than `than`? All shards use one clock. */
static bool is_older(const struct nj_abuse_view *v, const struct nj_abuse_view *than)
{
    return (int32_t)(v->second - than->second) < 0;
}

/* A shard keeps its last client until the next count, so only the latest second is current. */
static void merge_view(struct nj_abuse_view *sum, const struct nj_abuse_view *v)
{
    uint64_t n = sum->n + v->n;

    if (sum->n == 0 || is_older(sum, v)) {
        *sum = *v;
    } else if (!is_older(v, sum)) {
        bool others = sum->others || v->others || !nj_addr_eq(&sum->client, &v->client);
        if (v->weight > sum->weight)
            *sum = *v;
        sum->others = others;
    }
    sum->n = n;
}

bool nj_abuse_sum(const struct nj_abuse *const *of, uint32_t n, nj_counter reason,
                  struct nj_abuse_view *out)
{
    *out = (struct nj_abuse_view){0};
    for (uint32_t i = 0; i < n; i++) {
        struct nj_abuse_view view;
        if (nj_abuse_get_count_and_client(of[i], reason, &view))
            merge_view(out, &view);
    }
    return out->n > 0;
}

static uint64_t count_all(const struct nj_abuse *const *of, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += atomic_load_explicit(&of[i]->n, memory_order_acquire);
    return sum;
}

static bool is_line_due(const struct nj_abuse_log *log, nj_counter reason, nj_ns now)
{
    nj_ns every = reason == NJ_C_drop_tcp_denied ? EVERY_FORGED : EVERY;

    return log->n_logged[reason] == 0 || now - log->logged_at[reason] >= every;
}

static void format_line(struct nj_abuse_line *line, nj_counter reason,
                        const struct nj_abuse_view *sum, uint64_t times)
{
    const bool is_refusal = nj_abuse_is_refusal(reason);
    char text[NJ_ADDRESS_TEXT_BYTES];

    line->level = is_refusal ? NJ_LEVEL_INFO : NJ_LEVEL_WARNING;
    snprintf(line->text, sizeof line->text, "%s: client %s%s: %s %" PRIu64 " time%s: %s",
             is_refusal ? "refused" : "abuse", nj_address_text(&sum->client, text),
             sum->others ? " and others" : "", nj_counter_info[reason].name, times,
             times == 1 ? "" : "s", nj_counter_info[reason].what);
}

bool nj_abuse_log_next(struct nj_abuse_log *log, const struct nj_abuse *const *of, uint32_t n,
                       nj_ns now, struct nj_abuse_line *line)
{
    if (count_all(of, n) == log->n_logged_all)
        return false;
    for (unsigned i = 0; i < NJ_COUNTERS_MAX; i++) {
        nj_counter reason = (nj_counter)i;
        struct nj_abuse_view sum;
        if (!nj_abuse_sum(of, n, reason, &sum) || sum.n <= log->n_logged[i] ||
            !is_line_due(log, reason, now))
            continue;
        uint64_t times = sum.n - log->n_logged[i];
        format_line(line, reason, &sum, times);
        log->n_logged[i] = sum.n;
        log->n_logged_all += times;
        log->logged_at[i] = now;
        return true;
    }
    return false;
}
