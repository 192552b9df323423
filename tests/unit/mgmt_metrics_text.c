/* SPDX-License-Identifier: BSD-3-Clause */
/* Both text formats, sample by sample. */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "mgmt/metrics_text.h"

static char *text;
static size_t n_text;

static struct nj__metrics begin(bool is_openmetrics)
{
    struct nj__metrics m = {.out = open_memstream(&text, &n_text),
                            .is_openmetrics = is_openmetrics};
    cr_assert(m.out);
    return m;
}

static void expect_text(struct nj__metrics *m, const char *wanted)
{
    nj__metrics_end(m);
    fclose(m->out);
    cr_expect_str_eq(text, wanted);
    free(text);
}

static void add_one(struct nj__metrics *m, const char *name, enum nj__metric_type type,
                    uint64_t value)
{
    nj__metrics_begin(m, &(struct nj__metric){name, type, "what it is"});
    nj__metrics_add(m, value, NULL);
}

Test(mgmt_metrics_text, prometheus)
{
    struct nj__metrics m = begin(false);

    add_one(&m, "requests", NJ__METRIC_COUNTER, UINT64_MAX - 1);
    add_one(&m, "cached_bytes", NJ__METRIC_GAUGE, 7);
    add_one(&m, "build", NJ__METRIC_INFO, 1);
    expect_text(&m, "# HELP nightjar_requests_total what it is\n"
                    "# TYPE nightjar_requests_total counter\n"
                    "nightjar_requests_total 18446744073709551614\n"
                    "# HELP nightjar_cached_bytes what it is\n"
                    "# TYPE nightjar_cached_bytes gauge\n"
                    "nightjar_cached_bytes 7\n"
                    "# HELP nightjar_build_info what it is\n"
                    "# TYPE nightjar_build_info gauge\n"
                    "nightjar_build_info 1\n");
}

Test(mgmt_metrics_text, openmetrics)
{
    struct nj__metrics m = begin(true);

    add_one(&m, "rx_bytes", NJ__METRIC_COUNTER, 5);
    add_one(&m, "build", NJ__METRIC_INFO, 1);
    expect_text(&m, "# HELP nightjar_rx_bytes what it is\n"
                    "# TYPE nightjar_rx_bytes counter\n"
                    "# UNIT nightjar_rx_bytes bytes\n"
                    "nightjar_rx_bytes_total 5\n"
                    "# HELP nightjar_build what it is\n"
                    "# TYPE nightjar_build info\n"
                    "nightjar_build_info 1\n"
                    "# EOF\n");
}

Test(mgmt_metrics_text, a_value_that_is_not_known_has_no_sample)
{
    struct nj__metrics m = begin(false);

    add_one(&m, "requests", NJ__METRIC_COUNTER, NJ__METRIC_NONE);
    expect_text(&m, "# HELP nightjar_requests_total what it is\n"
                    "# TYPE nightjar_requests_total counter\n");
}

/* Also where the locale has a decimal comma. */
Test(mgmt_metrics_text, seconds_and_ratios_have_a_decimal_point)
{
    struct nj__metrics m = begin(false);
    static const struct nj__metric seconds = {"a_seconds", NJ__METRIC_GAUGE, "a"},
                                   ratio = {"b_ratio", NJ__METRIC_GAUGE, "b"},
                                   date = {"c_time_seconds", NJ__METRIC_GAUGE, "c"};

    setlocale(LC_ALL, "de_DE.UTF-8");
    nj__metrics_begin(&m, &seconds);
    nj__metrics_add(&m, 0, NULL);
    nj__metrics_add(&m, 1, NULL);
    nj__metrics_add(&m, 1500000000, NULL);
    nj__metrics_add(&m, 18000000000000000000u, NULL);
    nj__metrics_begin(&m, &ratio);
    nj__metrics_add(&m, 250000000, NULL);
    nj__metrics_begin(&m, &date);
    nj__metrics_add(&m, 253402300799, NULL);
    expect_text(&m, "# HELP nightjar_a_seconds a\n# TYPE nightjar_a_seconds gauge\n"
                    "nightjar_a_seconds 0\n"
                    "nightjar_a_seconds 0.000000001\n"
                    "nightjar_a_seconds 1.5\n"
                    "nightjar_a_seconds 18000000000\n"
                    "# HELP nightjar_b_ratio b\n# TYPE nightjar_b_ratio gauge\n"
                    "nightjar_b_ratio 0.25\n"
                    "# HELP nightjar_c_time_seconds c\n# TYPE nightjar_c_time_seconds gauge\n"
                    "nightjar_c_time_seconds 253402300799\n");
}

/* Bytes that are not UTF-8 would make a whole scrape fail. */
Test(mgmt_metrics_text, labels_are_escaped)
{
    static const struct nj__metric family = {"a", NJ__METRIC_GAUGE, "say \"a\\b\"\nand c"};
    const struct nj__metric_label labels[] = {
        {"plain", "x=1,y{}"}, {"odd", "\"\\\n\xc3\xa4\xff\xc0\xaf"}, {"empty", ""}, {0}};
    static const char sample[] = "nightjar_a{plain=\"x=1,y{}\",odd=\"\\\"\\\\\\n\xc3\xa4"
                                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",empty=\"\"} 1\n";
    char wanted[512];

    for (int i = 0; i < 2; i++) {
        bool is_openmetrics = i == 1;
        struct nj__metrics m = begin(is_openmetrics);
        nj__metrics_begin(&m, &family);
        nj__metrics_add(&m, 1, labels);
        snprintf(wanted, sizeof wanted, "# HELP nightjar_a say %s\n# TYPE nightjar_a gauge\n%s%s",
                 is_openmetrics ? "\\\"a\\\\b\\\"\\nand c" : "\"a\\\\b\"\\nand c", sample,
                 is_openmetrics ? "# EOF\n" : "");
        expect_text(&m, wanted);
    }
}

Test(mgmt_metrics_text, buckets_of_a_histogram_are_cumulative)
{
    static const struct nj__metric family = {"a_seconds", NJ__METRIC_HISTOGRAM, "a"};
    static struct nj_histogram h;
    struct nj__metrics m = begin(false);

    nj_histogram_add(&h, 1023);         /* below the first bound */
    nj_histogram_add(&h, 1u << 30);     /* at a bound: above it */
    nj_histogram_add(&h, NJ_NEVER / 4); /* above all */
    nj__metrics_add_histogram(&m, &family, &h);
    fclose(m.out);
    cr_expect(strstr(text, "nightjar_a_seconds_bucket{le=\"0.000001024\"} 1\n"));
    cr_expect(strstr(text, "nightjar_a_seconds_bucket{le=\"1.073741824\"} 1\n"));
    cr_expect(strstr(text, "nightjar_a_seconds_bucket{le=\"2.147483648\"} 2\n"));
    cr_expect(strstr(text, "nightjar_a_seconds_bucket{le=\"70368.744177664\"} 2\n"));
    cr_expect(strstr(text, "nightjar_a_seconds_bucket{le=\"+Inf\"} 3\n"
                           "nightjar_a_seconds_count 3\n"
                           "nightjar_a_seconds_sum 4611686019.50113075\n"),
              "%s", text);
    free(text);
}

Test(mgmt_metrics_text, families_of_a_table_are_whole)
{
    static const struct nj__metric families[] = {{"a", NJ__METRIC_GAUGE, "a"},
                                                 {"b", NJ__METRIC_COUNTER, "b"}};
    const struct nj__metric_row rows[] = {{{{"k", "1"}}, {1, 2}},
                                          {{{"k", "2"}}, {3, NJ__METRIC_NONE}}};
    struct nj__metrics m = begin(false);

    nj__metrics_add_table(&m, families, 2, rows, 2);
    expect_text(&m, "# HELP nightjar_a a\n# TYPE nightjar_a gauge\n"
                    "nightjar_a{k=\"1\"} 1\nnightjar_a{k=\"2\"} 3\n"
                    "# HELP nightjar_b_total b\n# TYPE nightjar_b_total counter\n"
                    "nightjar_b_total{k=\"1\"} 2\n");
}
