/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two text formats differ in few places: in OpenMetrics the lines about a family have its name
 * without the suffix of its samples, a line has the unit, an info has a type of its own, and the
 * last line marks the end.
 *
 * Numbers are written without floating point: printf() would use the decimal point of the locale.
 */
#include "mgmt/metrics_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/json_escape_utf8.h"

#define PREFIX "nightjar_"

static const char *suffix_of(enum nj__metric_type type)
{
    static const char *const suffix[] = {[NJ__METRIC_COUNTER] = "_total",
                                         [NJ__METRIC_GAUGE] = "",
                                         [NJ__METRIC_INFO] = "_info",
                                         [NJ__METRIC_HISTOGRAM] = ""};
    return suffix[type];
}

static const char *type_name(const struct nj__metrics *m, enum nj__metric_type type)
{
    static const char *const name[] = {[NJ__METRIC_COUNTER] = "counter",
                                       [NJ__METRIC_GAUGE] = "gauge",
                                       [NJ__METRIC_INFO] = "info",
                                       [NJ__METRIC_HISTOGRAM] = "histogram"};
    return type == NJ__METRIC_INFO && !m->is_openmetrics ? "gauge" : name[type];
}

/* The unit of a name; NULL: none. */
static const char *unit_of(const char *name)
{
    static const char *const units[] = {"seconds", "bytes", "ratio"};
    const char *last = strrchr(name, '_');

    for (size_t i = 0; i < NJ_ARRAY_LEN(units); i++)
        if (strcmp(last ? last + 1 : name, units[i]) == 0)
            return units[i];
    return NULL;
}

static bool is_in_billionths(const char *name)
{
    const char *unit = unit_of(name), *time = strstr(name, "_time_seconds");

    return unit && strcmp(unit, "bytes") != 0 && !time;
}

/* Any bytes, with the escapes of a label's value. */
static void put_escaped(FILE *out, const char *text, bool escapes_quotes)
{
    struct nj_str s = {text, (uint32_t)strlen(text)};

    while (s.n_bytes > 0) {
        const char *p = s.p;
        uint32_t c = nj_utf8_next(&s);
        if (c == NJ_UTF8_INVALID)
            fputs("\xef\xbf\xbd", out);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\\' || (c == '"' && escapes_quotes))
            fprintf(out, "\\%c", (char)c);
        else
            fwrite(p, 1, (size_t)(s.p - p), out);
    }
}

void nj__metrics_begin(struct nj__metrics *m, const struct nj__metric *family)
{
    const char *suffix = m->is_openmetrics ? "" : suffix_of(family->type);
    const char *unit = unit_of(family->name);

    m->family = family;
    fprintf(m->out, "# HELP " PREFIX "%s%s ", family->name, suffix);
    put_escaped(m->out, family->help, m->is_openmetrics);
    fprintf(m->out, "\n# TYPE " PREFIX "%s%s %s\n", family->name, suffix,
            type_name(m, family->type));
    if (m->is_openmetrics && unit)
        fprintf(m->out, "# UNIT " PREFIX "%s %s\n", family->name, unit);
}

/* value / 10^9, without zeros at the end. */
static void put_billionths(FILE *out, uint64_t value)
{
    uint64_t rest = value % 1000000000;
    int digits = 9;

    fprintf(out, "%" PRIu64, value / 1000000000);
    if (rest == 0)
        return;
    for (; rest % 10 == 0; rest /= 10)
        digits--;
    fprintf(out, ".%0*" PRIu64, digits, rest);
}

static void put_number(const struct nj__metrics *m, uint64_t value)
{
    if (is_in_billionths(m->family->name))
        put_billionths(m->out, value);
    else
        fprintf(m->out, "%" PRIu64, value);
}

void nj__metrics_add(struct nj__metrics *m, uint64_t value, const struct nj__metric_label *labels)
{
    const char *before = "{";

    if (value == NJ__METRIC_NONE)
        return;
    fprintf(m->out, PREFIX "%s%s", m->family->name, suffix_of(m->family->type));
    for (; labels && labels->name; labels++, before = ",") {
        fprintf(m->out, "%s%s=\"", before, labels->name);
        put_escaped(m->out, labels->value, true);
        fputc('"', m->out);
    }
    fputs(*before == ',' ? "} " : " ", m->out);
    put_number(m, value);
    fputc('\n', m->out);
}

void nj__metrics_add_histogram(struct nj__metrics *m, const struct nj__metric *family,
                               const struct nj_histogram *h)
{
    nj__metrics_begin(m, family);
    if (!h)
        return;
    for (unsigned bits = NJ_HISTOGRAM_BITS_MIN; bits <= NJ_HISTOGRAM_BITS_MAX; bits++) {
        fprintf(m->out, PREFIX "%s_bucket{le=\"", family->name);
        put_billionths(m->out, 1ull << bits);
        fprintf(m->out, "\"} %" PRIu64 "\n", nj_histogram_count_below(h, bits));
    }
    uint64_t n = nj_histogram_count(h);
    fprintf(m->out, PREFIX "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n" PREFIX "%s_count %" PRIu64 "\n",
            family->name, n, family->name, n);
    fprintf(m->out, PREFIX "%s_sum ", family->name);
    put_billionths(m->out, h->sum_ns);
    fputc('\n', m->out);
}

void nj__metrics_add_table(struct nj__metrics *m, const struct nj__metric *families,
                           size_t n_families, const struct nj__metric_row *rows, size_t n_rows)
{
    NJ_ASSERT(n_families <= NJ__METRICS_COLUMNS);
    for (size_t k = 0; k < n_families; k++) {
        nj__metrics_begin(m, &families[k]);
        for (size_t i = 0; i < n_rows; i++)
            nj__metrics_add(m, rows[i].value[k], rows[i].label);
    }
}

void nj__metrics_end(struct nj__metrics *m)
{
    if (m->is_openmetrics)
        fputs("# EOF\n", m->out);
}
