/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "out.h"

#include "base/relaxed_atomics.h"
#include "telem/counters.h"

#define CLIENT_LIMITS 0.9 /* above this share of busy time the client may be the limit */

static const double SHARES[] = {0.5, 0.75, 0.9, 0.99, 0.999, 0.9999};
static const char *const SHARE_NAMES[] = {"p50", "p75", "p90", "p99", "p99.9", "p99.99"};
#define N_SHARES (sizeof SHARES / sizeof SHARES[0])

void load_sum_take(struct load_sum *s, struct crowd *const *crowds, uint32_t n, nj_ns now)
{
    *s = (struct load_sum){.at = now};
    for (uint32_t i = 0; i < n; i++) {
        struct crowd *c = crowds[i];
#define LOAD_FIELD(name) s->name += atomic_load_explicit(&c->counts.name, memory_order_relaxed);
        LOAD_COUNTS(LOAD_FIELD)
#undef LOAD_FIELD
        s->n_open += atomic_load_explicit(&c->n_open, memory_order_relaxed);
        s->n_under_way += atomic_load_explicit(&c->n_under_way, memory_order_relaxed);
        s->n_unsent += atomic_load_explicit(&c->n_unsent, memory_order_relaxed);
        s->busy += atomic_load_explicit(&c->busy, memory_order_relaxed);
        s->idle += atomic_load_explicit(&c->idle, memory_order_relaxed);
        s->retransmits += c->shard ? nj_counter_read(&c->shard->counters, NJ_C_tcp_retransmit)
                                   : nj_load_relaxed(&c->retransmits);
        const char *fault = atomic_load_explicit(&c->fault, memory_order_relaxed);
        s->fault = fault ? fault : s->fault;
    }
}

static double seconds(nj_ns ns)
{
    return (double)ns / (double)NJ_SEC;
}

static uint64_t failed(const struct load_sum *s)
{
    return s->reset + s->timeout + s->lost;
}

static uint64_t connection_losses(const struct load_sum *s)
{
    return s->refused + s->unreachable + s->tls_failed + s->closed + s->cut + s->broken;
}

static double busy(const struct load_sum *from, const struct load_sum *to)
{
    double work = (double)(to->busy - from->busy);
    double all = work + (double)(to->idle - from->idle);
    return all > 0 ? work / all : 0;
}

/* With a suitable unit. */
static const char *time_text(nj_ns ns, char out[24])
{
    if (ns < 100 * NJ_US)
        snprintf(out, 24, "%.2f us", (double)ns / 1e3);
    else if (ns < 100 * NJ_MS)
        snprintf(out, 24, "%.3f ms", (double)ns / 1e6);
    else
        snprintf(out, 24, "%.3f s", seconds(ns));
    return out;
}

/* ---- while it runs ---- */

void load_report_progress(struct load_report *r, struct crowd *const *crowds, enum load_phase phase,
                          nj_ns now)
{
    static const char *const doing[] = {"opening",   "warming up", "measuring",
                                        "finishing", "closing",    "over"};
    struct load_sum s;
    char p50[24], p99[24];

    load_sum_take(&s, crowds, r->n_lcores, now);
    double time = seconds(s.at - r->last.at);
    double done = time > 0 ? (double)(s.done - r->last.done) / time : 0;
    double rate = time > 0 ? (double)(s.body_bytes - r->last.body_bytes) / time : 0;
    r->last = s;
    if (phase == LOAD_MEASURING && r->n_series < LOAD_SERIES_MAX && r->series)
        r->series[r->n_series++] = (uint32_t)done;
    if (r->o->quiet)
        return;
    struct fine_histogram all = {0};
    for (uint32_t i = 0; i < r->n_lcores; i++)
        fine_histogram_merge(&all, &crowds[i]->total);
    fprintf(stderr, "%-10s %8" PRIu64 " open %10.0f req/s %9.1f MiB/s", doing[phase], s.n_open,
            done, rate / (1 << 20));
    if (fine_histogram_count(&all) > 0)
        fprintf(stderr, "  p50 %s  p99 %s", time_text(fine_histogram_quantile(&all, .5), p50),
                time_text(fine_histogram_quantile(&all, .99), p99));
    if (s.n_unsent > 0)
        fprintf(stderr, "  %" PRIu64 " late", s.n_unsent);
    if (failed(&s) + connection_losses(&s) > 0)
        fprintf(stderr, "  %" PRIu64 " failed", failed(&s));
    if (connection_losses(&s) > 0)
        fprintf(stderr, "  %" PRIu64 " connections not made, %" PRIu64 " ended",
                s.refused + s.unreachable + s.tls_failed, s.closed + s.cut + s.broken);
    fputc('\n', stderr);
}

/* ---- at the end ---- */

static void latency_line(const char *name, const struct fine_histogram *l)
{
    char text[24];

    printf("  %-12s", name);
    for (size_t i = 0; i < N_SHARES; i++)
        printf(" %s %-10s", SHARE_NAMES[i], time_text(fine_histogram_quantile(l, SHARES[i]), text));
    printf(" max %s\n", time_text(atomic_load(&l->max_ns), text));
}

static void table(const struct load_report *r)
{
    const struct load_options *o = r->o;
    const struct load_sum *a = &r->from, *b = &r->to, *e = &r->end;
    double time = seconds(b->at - a->at), mine = busy(a, b);

    printf("\n%u connection%s x %u %s%s to %s over %s, %u %s%s, %.2f s", o->n_conns,
           o->n_conns == 1 ? "" : "s", o->plan.streams, o->plan.framing->stream,
           o->plan.streams == 1 ? "" : "s", o->authority, r->driver, r->n_lcores,
           o->over_dpdk ? "lcore" : "thread", r->n_lcores == 1 ? "" : "s", time);
    if (o->rate > 0)
        printf(", %.0f req/s wanted", o->rate);
    printf("\n  %-12s %.0f /s\n", "answered", (double)(b->done - a->done) / time);
    printf("  %-12s %.2f MiB/s", "bodies",
           (double)(b->body_bytes - a->body_bytes) / time / (1 << 20));
    if (o->plan.upload_bytes)
        printf(", sent %.2f MiB/s", (double)(b->upload_bytes - a->upload_bytes) / time / (1 << 20));
    putchar('\n');
    latency_line("latency", &r->total);
    latency_line("first byte", &r->first);
    printf("  %-12s %" PRIu64 " asked, %" PRIu64 " answered (2xx %" PRIu64 ", 3xx %" PRIu64
           ", 4xx %" PRIu64 ", 5xx %" PRIu64 "), %" PRIu64 " reset, %" PRIu64 " timed out, %" PRIu64
           " lost\n",
           "in all", e->asked, e->done, e->status_2, e->status_3, e->status_4, e->status_5,
           e->reset, e->timeout, e->lost);
    printf("  %-12s %" PRIu64 " made, %" PRIu64 " refused, %" PRIu64 " unreachable, %" PRIu64
           " without TLS; ended by the server: %" PRIu64 " closed, %" PRIu64 " reset, %" PRIu64
           " for its faults; %" PRIu64 " segments sent again\n",
           "connections", e->connected, e->refused, e->unreachable, e->tls_failed, e->closed,
           e->cut, e->broken, e->retransmits);
    if (e->fault)
        printf("  %-12s %s\n", "last fault", e->fault);
    if (b->n_unsent > 0)
        printf("  %-12s %" PRIu64 " requests were due and not asked: no %s was free\n", "late",
               b->n_unsent, o->plan.framing->stream);
    printf("  %-12s %.1f %% busy%s\n", "this client", mine * 100,
           mine > CLIENT_LIMITS ? ": it may be the limit, not the server" : "");
}

static void json_latency(FILE *f, const char *name, const struct fine_histogram *l)
{
    uint64_t n = fine_histogram_count(l);
    double mean = n > 0 ? (double)atomic_load(&l->sum_ns) / (double)n : 0;

    fprintf(f, "  \"%s_ns\": {\"count\": %" PRIu64 ", \"mean\": %.0f, \"min\": %" PRIu64, name, n,
            mean, (uint64_t)atomic_load(&l->min_ns));
    for (size_t i = 0; i < N_SHARES; i++)
        fprintf(f, ", \"%s\": %" PRIu64, SHARE_NAMES[i],
                (uint64_t)fine_histogram_quantile(l, SHARES[i]));
    fprintf(f, ", \"max\": %" PRIu64 "},\n", (uint64_t)atomic_load(&l->max_ns));
}

static void json_sum(FILE *f, const char *name, const struct load_sum *s)
{
    fprintf(f, "  \"%s\": {", name);
#define LOAD_FIELD(field) fprintf(f, "\"" #field "\": %" PRIu64 ", ", s->field);
    LOAD_COUNTS(LOAD_FIELD)
#undef LOAD_FIELD
    fprintf(f,
            "\"open\": %" PRIu64 ", \"under_way\": %" PRIu64 ", \"unsent\": %" PRIu64
            ", \"retransmits\": %" PRIu64 "},\n",
            s->n_open, s->n_under_way, s->n_unsent, s->retransmits);
}

static void json(const struct load_report *r, FILE *f)
{
    const struct load_options *o = r->o;
    const struct load_sum *a = &r->from, *b = &r->to;
    double time = seconds(b->at - a->at);

    fprintf(f,
            "{\n  \"authority\": \"%s\", \"protocol\": \"%s\", \"driver\": \"%s\", "
            "\"lcores\": %u,\n",
            o->authority, o->plan.framing->alpn, r->driver, r->n_lcores);
    fprintf(f,
            "  \"connections\": %u, \"streams\": %u, \"rate_wanted\": %.3f, \"upload_bytes\": "
            "%" PRIu64 ", \"seed\": %" PRIu64 ",\n",
            o->n_conns, o->plan.streams, o->rate, o->plan.upload_bytes, o->seed);
    fprintf(f,
            "  \"seconds\": %.6f, \"requests_per_second\": %.2f, \"body_bytes_per_second\": "
            "%.0f, \"upload_bytes_per_second\": %.0f, \"client_busy\": %.4f,\n",
            time, (double)(b->done - a->done) / time,
            (double)(b->body_bytes - a->body_bytes) / time,
            (double)(b->upload_bytes - a->upload_bytes) / time, busy(a, b));
    json_latency(f, "latency", &r->total);
    json_latency(f, "first_byte", &r->first);
    json_sum(f, "before", a);
    json_sum(f, "after", b);
    json_sum(f, "in_all", &r->end);
    fprintf(f, "  \"answers_per_second\": [");
    for (uint32_t i = 0; i < r->n_series; i++)
        fprintf(f, "%s%u", i ? ", " : "", r->series[i]);
    fprintf(f, "]\n}\n");
}

static void csv(const struct load_report *r, FILE *f)
{
    uint64_t n = fine_histogram_count(&r->total), seen = 0;

    fprintf(f, "up_to_ns,count,share\n");
    for (unsigned i = 0; i < FINE_HISTOGRAM_BUCKETS; i++) {
        uint64_t here = atomic_load_explicit(&r->total.n[i], memory_order_relaxed);
        nj_ns end = fine_histogram_bucket_max(i), most = atomic_load(&r->total.max_ns);
        seen += here;
        if (here > 0)
            fprintf(f, "%" PRIu64 ",%" PRIu64 ",%.9f\n", (uint64_t)(end < most ? end : most), here,
                    (double)seen / (double)n);
    }
}

static bool write_file(const struct load_report *r, const char *path,
                       void (*write)(const struct load_report *, FILE *))
{
    FILE *f = out_open(path);
    if (f)
        write(r, f);
    return f && out_close(f, path);
}

bool load_report_end(const struct load_report *r)
{
    bool good = true;

    if (!r->o->json || strcmp(r->o->json, "-") != 0)
        table(r);
    if (r->o->json)
        good = write_file(r, r->o->json, json);
    if (r->o->csv)
        good = write_file(r, r->o->csv, csv) && good;
    return good;
}
