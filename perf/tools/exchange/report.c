/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#include "out.h"

#define VALUES_MAX (REPORT_ROUNDS_MAX * REPORT_THREADS_MAX)

/* Minimum, median and maximum of the measurements. */
struct figure {
    double least, median, most;
};

void report_count(const struct shape *shape, const struct cost *c)
{
    printf("{\"shape\": \"%s\", \"connections\": %u, \"streams\": %u, \"file_bytes\": %lu, "
           "\"requests\": %lu, \"steps\": %lu, \"rx_packets\": %lu, \"tx_packets\": %lu}\n",
           shape->name, shape->n_conns, shape->streams, (unsigned long)shape->file_bytes,
           (unsigned long)c->n_requests, (unsigned long)c->n_steps, (unsigned long)c->rx_packets,
           (unsigned long)c->tx_packets);
}

struct report_shape *report_add(struct report *r)
{
    return r->n_shapes < REPORT_SHAPES_MAX ? &r->of[r->n_shapes++] : NULL;
}

/* ---- statistics ---- */

static double per_request(const struct cost *c)
{
    return (double)c->cycles / (double)c->n_requests;
}

/* Share of `stage` in the cycles of the sampled steps. */
static double share(const struct cost *c, uint32_t n, unsigned stage)
{
    uint64_t part = 0, all = 0;

    for (uint32_t i = 0; i < n; i++) {
        part += c[i].stage[stage];
        for (unsigned k = 0; k < NJ_N_STAGES; k++)
            all += c[i].stage[k];
    }
    return all ? (double)part / (double)all : 0;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static struct figure figure_of(double *value, uint32_t n)
{
    qsort(value, n, sizeof *value, by_value);
    double middle = n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
    return (struct figure){value[0], middle, value[n - 1]};
}

static struct figure cycles_of(const struct cost *c, uint32_t n)
{
    double value[VALUES_MAX];

    for (uint32_t i = 0; i < n; i++)
        value[i] = per_request(&c[i]);
    return figure_of(value, n);
}

static uint32_t n_together(const struct report *r)
{
    return r->n_threads > 1 ? r->n_rounds * r->n_threads : 0;
}

/* ---- text ---- */

static void table_of_costs(const struct report *r)
{
    printf("%-13s %10s %10s %10s %14s %10s", "shape", "cycles", "ns per", "at full", "spread of ns",
           "packets");
    printf(" %8s   by stage, ns:\n%-13s %10s %10s %10s %14s %10s %8s", "", "", "/request",
           "request", "load /s", "", "in", "out");
    for (unsigned k = 0; k < NJ_N_STAGES; k++)
        printf(" %8s", nj_stage_name[k]);
    putchar('\n');
    for (uint32_t i = 0; i < r->n_shapes; i++) {
        const struct report_shape *s = &r->of[i];
        const struct cost *c = s->alone[0];
        struct figure f = cycles_of(c, r->n_rounds);
        double ns = 1e9 / (double)r->hz, n = (double)c->n_requests;
        printf("%-13s %10.0f %10.0f %10.0f %6.0f..%-6.0f %10.2f %8.2f", s->shape->name, f.median,
               f.median * ns, (double)r->hz / f.median, f.least * ns, f.most * ns,
               (double)c->rx_packets / n, (double)c->tx_packets / n);
        for (unsigned k = 0; k < NJ_N_STAGES; k++)
            printf(" %8.0f", f.median * ns * share(c, r->n_rounds, k));
        putchar('\n');
    }
}

/* Cost of a request while another CPU is equally busy, relative to the cost alone. */
static void table_of_threads(const struct report *r)
{
    printf("\n%-13s %8s %24s %30s %12s\n", "shape", "thread", "cycles/request alone",
           "while the other runs, too", "both/alone");
    for (uint32_t i = 0; i < r->n_shapes; i++)
        for (uint32_t k = 0; k < r->n_threads; k++) {
            const struct report_shape *s = &r->of[i];
            struct figure a = cycles_of(s->alone[k], r->n_rounds);
            struct figure b = cycles_of(s->together[k], n_together(r));
            printf("%-13s %8u %8.0f %7.0f..%-7.0f %14.0f %7.0f..%-7.0f %12.3f\n", s->shape->name, k,
                   a.median, a.least, a.most, b.median, b.least, b.most, b.median / a.median);
        }
}

void report_table(const struct report *r)
{
    printf("%u rounds; medians, minima and maxima. Cycles are those of the TSC, %.0f MHz\n\n",
           r->n_rounds, (double)r->hz / 1e6);
    table_of_costs(r);
    if (r->n_threads > 1)
        table_of_threads(r);
}

/* ---- JSON ---- */

static void json_costs(FILE *f, const char *name, const struct cost *c, uint32_t n)
{
    fprintf(f, "\"%s\": [", name);
    for (uint32_t i = 0; i < n; i++) {
        fprintf(f, "%s{\"requests\": %lu, \"steps\": %lu, \"rx_packets\": %lu, ", i ? ", " : "",
                (unsigned long)c[i].n_requests, (unsigned long)c[i].n_steps,
                (unsigned long)c[i].rx_packets);
        fprintf(f, "\"tx_packets\": %lu, \"cycles\": %lu, \"stages\": {",
                (unsigned long)c[i].tx_packets, (unsigned long)c[i].cycles);
        for (unsigned k = 0; k < NJ_N_STAGES; k++)
            fprintf(f, "%s\"%s\": %lu", k ? ", " : "", nj_stage_name[k],
                    (unsigned long)c[i].stage[k]);
        fprintf(f, "}}");
    }
    fputc(']', f);
}

static void json(const struct report *r, FILE *f)
{
    fprintf(f, "{\"tsc_hz\": %lu, \"shapes\": {", (unsigned long)r->hz);
    for (uint32_t i = 0; i < r->n_shapes; i++) {
        const struct report_shape *s = &r->of[i];
        fprintf(f, "%s\n \"%s\": {\"threads\": [", i ? "," : "", s->shape->name);
        for (uint32_t k = 0; k < r->n_threads; k++) {
            fprintf(f, "%s\n  {", k ? "," : "");
            json_costs(f, "alone", s->alone[k], r->n_rounds);
            fprintf(f, ",\n   ");
            json_costs(f, "together", s->together[k], n_together(r));
            fputc('}', f);
        }
        fprintf(f, "]}");
    }
    fprintf(f, "}}\n");
}

bool report_json(const struct report *r, const char *path)
{
    FILE *f = out_open(path);
    if (f)
        json(r, f);
    return f && out_close(f, path);
}
