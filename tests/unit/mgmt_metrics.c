/* SPDX-License-Identifier: BSD-3-Clause */
/* All metrics of a server, in both formats, read by a strict parser. */
#include <criterion/criterion.h>
#include <ctype.h>

#include "support/metrics_view.h"
#include "support/scratch.h"

TestSuite(mgmt_metrics, .fini = scratch_remove);

#define FAMILIES_MAX 512
#define SAMPLES_MAX  4096

struct family {
    const char *name, *type, *unit;
    bool has_help;
};

struct sample {
    const struct family *of;
    const char *name, *labels, *value; /* `labels` without braces; "": none */
};

/* The output, which `text` holds in pieces. */
static struct parsed {
    char *text;
    bool is_openmetrics, has_end;
    uint32_t n_families, n_samples;
    struct family family[FAMILIES_MAX];
    struct sample sample[SAMPLES_MAX];
} parsed;

/* --- the parser ----------------------------------------------------------------------------- */

static void expect_name(const char *name)
{
    cr_assert(strncmp(name, "nightjar_", 9) == 0, "%s", name);
    for (const char *c = name; *c; c++)
        cr_assert(islower(*c) || isdigit(*c) || *c == '_', "%s", name);
    cr_assert(!strstr(name, "__") && name[strlen(name) - 1] != '_', "%s", name);
}

/* Cuts the text at the first `c`, and returns what is behind it. */
static char *cut(char *text, char c)
{
    char *at = strchr(text, c);

    cr_assert(at, "no '%c' in %s", c, text);
    *at = '\0';
    return at + 1;
}

static struct family *new_family(const char *name)
{
    cr_assert(parsed.n_families < FAMILIES_MAX);
    expect_name(name);
    for (uint32_t i = 0; i < parsed.n_families; i++)
        cr_assert_str_neq(parsed.family[i].name, name, "twice");
    struct family *f = &parsed.family[parsed.n_families++];
    f->name = name;
    return f;
}

/* # WORD NAME TEXT */
static void parse_comment(char *line)
{
    struct family *last = parsed.n_families ? &parsed.family[parsed.n_families - 1] : NULL;

    if (strcmp(line, "# EOF") == 0) {
        parsed.has_end = true;
        return;
    }
    cr_assert(strncmp(line, "# ", 2) == 0, "%s", line);
    char *word = line + 2, *name = cut(word, ' '), *text = cut(name, ' ');
    cr_assert(*text, "%s", name);
    if (strcmp(word, "HELP") == 0) {
        new_family(name)->has_help = true;
        return;
    }
    cr_assert(last && strcmp(last->name, name) == 0, "%s %s", word, name);
    if (strcmp(word, "TYPE") == 0) {
        cr_assert_null(last->type);
        last->type = text;
        return;
    }
    cr_assert_str_eq(word, "UNIT");
    cr_assert(parsed.is_openmetrics && last->type && !last->unit);
    size_t n = strlen(name), n_unit = strlen(text);
    cr_assert(n > n_unit + 1 && name[n - n_unit - 1] == '_' && strcmp(name + n - n_unit, text) == 0,
              "%s", name);
    last->unit = text;
}

/* name="value",... Returns what is behind the closing brace, which is overwritten. */
static char *parse_labels(char *c)
{
    for (;; c++) {
        cr_assert(islower(*c), "%s", c);
        while (islower(*c) || *c == '_')
            c++;
        cr_assert(c[0] == '=' && c[1] == '"', "%s", c);
        for (c += 2; *c != '"'; c++) {
            cr_assert(*c, "no end");
            if (*c == '\\') {
                c++;
                cr_assert(*c == 'n' || *c == '\\' || *c == '"', "%s", c);
            }
        }
        c++;
        if (*c != ',')
            break;
    }
    cr_assert_eq(*c, '}');
    *c = '\0';
    return c + 1;
}

static void expect_number(const char *value)
{
    size_t n = strspn(value, "0123456789");

    cr_assert_gt(n, 0, "%s", value);
    if (value[n] == '.') {
        size_t n_more = strspn(value + n + 1, "0123456789");
        cr_assert_gt(n_more, 0, "%s", value);
        n += 1 + n_more;
    }
    cr_assert_eq(value[n], '\0', "%s", value);
}

static const char *suffix_of(const struct sample *s)
{
    size_t n = strlen(s->of->name);

    cr_assert(strncmp(s->name, s->of->name, n) == 0, "%s is not of %s", s->name, s->of->name);
    return s->name + n;
}

/* The name of a sample fits the type of its family. */
static void expect_suffix(const struct sample *s)
{
    const char *type = s->of->type, *suffix = suffix_of(s);
    bool is_om = parsed.is_openmetrics;

    if (strcmp(type, "histogram") == 0)
        cr_assert(strcmp(suffix, "_bucket") == 0 || strcmp(suffix, "_count") == 0 ||
                      strcmp(suffix, "_sum") == 0,
                  "%s", s->name);
    else
        cr_assert_str_eq(suffix, is_om && strcmp(type, "counter") == 0 ? "_total"
                                 : is_om && strcmp(type, "info") == 0  ? "_info"
                                                                       : "");
    const char *end = s->name + strlen(s->name) - strlen("_total");
    cr_assert_eq(strcmp(type, "counter") == 0, strcmp(end, "_total") == 0, "%s", s->name);
}

static void parse_sample(char *line)
{
    cr_assert(parsed.n_samples < SAMPLES_MAX && parsed.n_families > 0);
    struct sample *s = &parsed.sample[parsed.n_samples];
    char *brace = strchr(line, '{'), *rest;

    s->of = &parsed.family[parsed.n_families - 1];
    cr_assert(s->of->type && s->of->has_help, "%s", line);
    s->name = line;
    s->labels = "";
    if (brace) {
        *brace = '\0';
        s->labels = brace + 1;
        rest = parse_labels(brace + 1);
        cr_assert_eq(*rest++, ' ');
    } else {
        rest = cut(line, ' ');
    }
    s->value = rest;
    expect_number(s->value);
    expect_suffix(s);
    for (uint32_t i = 0; i < parsed.n_samples; i++)
        cr_assert(strcmp(parsed.sample[i].name, s->name) != 0 ||
                      strcmp(parsed.sample[i].labels, s->labels) != 0,
                  "twice: %s{%s}", s->name, s->labels);
    parsed.n_samples++;
}

/* Buckets rise, and the last one is the count. */
static void expect_histogram(uint32_t first)
{
    double bound = 0, n = 0;
    uint32_t i = first;

    for (; strcmp(suffix_of(&parsed.sample[i]), "_bucket") == 0; i++) {
        const struct sample *s = &parsed.sample[i];
        char *end;
        cr_assert(strncmp(s->labels, "le=\"", 4) == 0, "%s", s->labels);
        double next = strtod(s->labels + 4, &end);
        cr_assert_str_eq(end, "\"");
        cr_assert(next > bound && atof(s->value) >= n, "%s{%s}", s->name, s->labels);
        bound = next;
        n = atof(s->value);
    }
    cr_assert_str_eq(parsed.sample[i - 1].labels, "le=\"+Inf\"");
    cr_assert_str_eq(suffix_of(&parsed.sample[i]), "_count");
    cr_assert_float_eq(atof(parsed.sample[i].value), n, 0);
    cr_assert_str_eq(suffix_of(&parsed.sample[i + 1]), "_sum");
}

static void parse(const struct metrics_view *m, bool is_openmetrics)
{
    size_t n;

    free(parsed.text);
    parsed = (struct parsed){.is_openmetrics = is_openmetrics};
    FILE *out = open_memstream(&parsed.text, &n);
    nj__metrics_write(&m->v, is_openmetrics, out);
    cr_assert_eq(fclose(out), 0);
    cr_assert(n > 0 && parsed.text[n - 1] == '\n' && strlen(parsed.text) == n);
    for (char *line = parsed.text; *line;) {
        char *next = cut(line, '\n');
        cr_assert(!parsed.has_end, "behind the end: %s", line);
        (*line == '#' ? parse_comment : parse_sample)(line);
        line = next;
    }
    cr_assert_eq(parsed.has_end, is_openmetrics);
    for (uint32_t i = 0; i < parsed.n_samples; i++)
        if (strcmp(parsed.sample[i].of->type, "histogram") == 0 &&
            (i == 0 || parsed.sample[i - 1].of != parsed.sample[i].of))
            expect_histogram(i);
}

/* The value of a sample, "" if there is none. */
static const char *value_of(const char *name, const char *labels)
{
    for (uint32_t i = 0; i < parsed.n_samples; i++)
        if (strcmp(parsed.sample[i].name, name) == 0 &&
            strcmp(parsed.sample[i].labels, labels) == 0)
            return parsed.sample[i].value;
    return "";
}

/* --- the tests ------------------------------------------------------------------------------ */

static struct metrics_view *start_with(uint32_t n_routes)
{
    scratch_make();
    return metrics_view_new(scratch, n_routes);
}

static struct metrics_view *start(void)
{
    return start_with(1);
}

static void finish(struct metrics_view *m)
{
    metrics_view_free(m);
    free(parsed.text);
    parsed.text = NULL;
}

/* nightjar_NAME_total, or of a group nightjar_GROUP_total{label="REST"}; gauges nightjar_NAME. */
static void expect_counter(nj_counter i, uint64_t n)
{
    static const char *const groups[][2] = {{"drop_tx", "reason"},
                                            {"drop", "reason"},
                                            {"h2_abuse", "reason"},
                                            {"status", "code"},
                                            {"tls_failed", "reason"}};
    const char *counter = nj_counter_info[i].name;
    char name[128], labels[128] = "", wanted[32];

    snprintf(name, sizeof name, "nightjar_%s%s", counter,
             nj_counter_info[i].kind == NJ_KIND_GAUGE ? "" : "_total");
    for (size_t k = 0; k < NJ_ARRAY_LEN(groups); k++) {
        size_t n_group = strlen(groups[k][0]);
        if (strncmp(counter, groups[k][0], n_group) != 0)
            continue;
        if (counter[n_group] == '\0') /* the sum */
            return;
        cr_assert_eq(counter[n_group], '_', "%s", counter);
        snprintf(name, sizeof name, "nightjar_%s_total", groups[k][0]);
        snprintf(labels, sizeof labels, "%s=\"%s\"", groups[k][1], counter + n_group + 1);
        break;
    }
    snprintf(wanted, sizeof wanted, "%lu", (unsigned long)n);
    cr_expect_str_eq(value_of(name, labels), wanted, "%s: %s{%s}", counter, name, labels);
}

Test(mgmt_metrics, every_counter_is_there)
{
    struct metrics_view *m = start();
    uint64_t before[NJ_COUNTERS_MAX];

    for (nj_counter i = 0; i < NJ_COUNTERS_MAX; i++) {
        if (nj_counter_info[i].name && nj_counter_info[i].kind == NJ_KIND_EVENT)
            nj_count_n(&m->r->s->counters, i, 1000 + i);
        before[i] = nj_counter_info[i].name ? nj_mgmt_sum_counter(&m->v, i) : 0;
    }
    parse(m, false);
    for (nj_counter i = 0; i < NJ_COUNTERS_MAX; i++)
        if (nj_counter_info[i].name)
            expect_counter(i, before[i]);
    finish(m);
}

/* The same families and samples, apart from the names that differ. */
Test(mgmt_metrics, both_formats_say_the_same)
{
    struct metrics_view *m = start();

    parse(m, false);
    uint32_t n_families = parsed.n_families, n_samples = parsed.n_samples;
    parse(m, true);
    cr_expect_eq(parsed.n_families, n_families);
    cr_expect_eq(parsed.n_samples, n_samples);
    for (uint32_t i = 0; i < parsed.n_families; i++) {
        const char *last = strrchr(parsed.family[i].name, '_') + 1;
        bool has_unit = strcmp(last, "seconds") == 0 || strcmp(last, "bytes") == 0 ||
                        strcmp(last, "ratio") == 0;
        cr_expect_eq(parsed.family[i].unit != NULL, has_unit, "%s", parsed.family[i].name);
    }
    finish(m);
}

Test(mgmt_metrics, requests_are_in_histograms_and_classes)
{
    struct metrics_view *m = start();
    struct rig_peer *p = rig_connect_h2(m->r, 1000);

    for (uint32_t i = 0; i < 3; i++)
        rig_get(m->r, p, 1 + 2 * i, "/index.html");
    rig_run(m->r, NJ_SEC);
    nj_shard_publish(m->r->s);
    parse(m, false);
    cr_expect_str_eq(value_of("nightjar_requests_total", ""), "3");
    cr_expect_str_eq(value_of("nightjar_status_total", "code=\"2xx\""), "3");
    cr_expect_str_eq(value_of("nightjar_first_byte_seconds_count", ""), "3");
    cr_expect_str_eq(value_of("nightjar_request_seconds_bucket", "le=\"+Inf\""), "3");
    cr_expect_str_eq(value_of("nightjar_throttled_seconds_count", ""), "0");
    cr_expect_str_eq(value_of("nightjar_class_requests_total", "class=\"default\""), "3");
    cr_expect_str_eq(value_of("nightjar_class_requests_total", "class=\"slow\""), "0");
    cr_expect_str_eq(value_of("nightjar_class_body_bytes_total", "class=\"default\""), "300");
    cr_expect_str_eq(value_of("nightjar_lcore_connections", "lcore=\"5\""), "1");
    cr_expect_str_eq(value_of("nightjar_h2_connections", ""), "1");
    finish(m);
}

Test(mgmt_metrics, lcores_and_ports)
{
    struct metrics_view *m = start();
    struct rte_mbuf *held[256];

    nj_count_n(&m->r->s->counters, NJ_C_cycles_busy, 2500000000u);
    cr_assert_eq(rte_pktmbuf_alloc_bulk(m->r->rx_pool, held, 256), 0);
    parse(m, false);
    cr_expect_str_eq(value_of("nightjar_lcore_seconds_total", "lcore=\"5\",state=\"busy\""), "2.5");
    cr_expect_str_eq(value_of("nightjar_lcore_seconds_total", "lcore=\"5\",state=\"idle\""), "0");
    cr_expect_str_eq(value_of("nightjar_lcore_rx_mbufs", "lcore=\"5\""), "256");
    cr_expect_str_eq(value_of("nightjar_lcore_rx_mbufs_ratio", "lcore=\"5\""), "0.25");
    cr_expect_str_eq(
        value_of("nightjar_lcore_info", "lcore=\"5\",cpu=\"7\",node=\"-1\",port=\"2\""), "1");
    cr_expect_str_eq(value_of("nightjar_port_link_up", "port=\"2\""), "1");
    cr_expect_str_eq(value_of("nightjar_port_link_speed_bytes", "port=\"2\""), "1250000000");
    cr_expect_str_eq(value_of("nightjar_port_rx_missed_total", "port=\"2\""), "3");
    cr_expect_str_eq(value_of("nightjar_port_tx_packets_total", "port=\"2\""), "", "not known");
    cr_expect_str_eq(
        value_of("nightjar_port_info",
                 "port=\"2\",device=\"net_tap0\",driver=\"net_tap\",mac=\"00:00:00:00:00:00\","
                 "spread=\"one queue\",offloads=\"none\""),
        "1");
    for (uint32_t i = 0; i < 256; i++)
        rte_pktmbuf_free(held[i]);
    finish(m);
}

/* The second lcore has no receive queue, and here the counters of the first one. */
Test(mgmt_metrics, several_lcores)
{
    struct metrics_view *m = start();

    m->v.n_shards = m->v.port[0].n_shards = 2;
    m->v.shard[1] = m->v.shard[0];
    m->lcore[1] = (struct nj_lcore){.id = 6, .cpu = 8, .control = &m->control};
    m->dev.tx_pool[1] = m->r->tx_pool;
    nj_count_n(&m->r->s->counters, NJ_C_requests, 7);
    parse(m, false);
    cr_expect_str_eq(value_of("nightjar_requests_total", ""), "14");
    cr_expect_str_eq(value_of("nightjar_lcore_requests_total", "lcore=\"5\""), "7");
    cr_expect_str_eq(value_of("nightjar_lcore_requests_total", "lcore=\"6\""), "7");
    cr_expect_str_eq(value_of("nightjar_lcore_rx_mbufs_limit", "lcore=\"5\""), "1024");
    cr_expect_str_eq(value_of("nightjar_lcore_rx_mbufs_limit", "lcore=\"6\""), "");
    cr_expect_str_eq(value_of("nightjar_lcore_tx_mbufs_limit", "lcore=\"6\""), "1024");
    finish(m);
}

/* Later routes are one. */
Test(mgmt_metrics, many_routes)
{
    struct metrics_view *m = start_with(METRICS_ROUTES_MAX);
    struct nj_task_class *classes = m->r->s->conns.handlers.classes;
    uint32_t n = 0;

    for (uint32_t i = 0; i < METRICS_ROUTES_MAX; i++)
        classes[i].n[NJ_MODE_PEC_WORKER] = classes[i].n_moves = i;
    parse(m, false);
    cr_expect_str_eq(
        value_of("nightjar_route_requests_total", "route=\"GET /route31\",mode=\"pec_worker\""),
        "31");
    cr_expect_str_eq(
        value_of("nightjar_route_requests_total", "route=\"others\",mode=\"pec_worker\""),
        "284"); /* 32 + ... + 39 */
    cr_expect_str_eq(value_of("nightjar_route_moves_total", "route=\"others\""), "284");
    for (uint32_t i = 0; i < parsed.n_samples; i++)
        n += strcmp(parsed.sample[i].name, "nightjar_route_moves_total") == 0;
    cr_expect_eq(n, 33);
    finish(m);
}

static void expect_phase(struct metrics_view *m, enum nj_run_phase phase, const char *labels)
{
    atomic_store(&m->control.phase, phase);
    parse(m, true);
    cr_expect_str_eq(value_of("nightjar_phase", labels), "1", "%s", labels);
    cr_expect_str_eq(value_of("nightjar_phase", "phase=\"run\""),
                     phase == NJ_PHASE_RUN ? "1" : "0");
}

Test(mgmt_metrics, state_of_the_server)
{
    struct metrics_view *m = start();
    char labels[256];

    expect_phase(m, NJ_PHASE_RUN, "phase=\"run\"");
    cr_expect_str_eq(value_of("nightjar_start_time_seconds", ""), "1700000000");
    cr_expect_str_eq(value_of("nightjar_reload_time_seconds", ""), "1700000100");
    cr_expect_str_eq(value_of("nightjar_reload_success", ""), "1");
    cr_expect_str_eq(value_of("nightjar_policy_version", ""), "1");
    snprintf(labels, sizeof labels, "kind=\"certificate\",file=\"%s\"", m->cert.cert);
    const char *ends = value_of("nightjar_tls_expiry_time_seconds", labels);
    struct tm tm;
    ASN1_TIME_to_tm(X509_get0_notAfter(m->cert.x), &tm);
    cr_expect_eq(atoll(ends), timegm(&tm), "%s", ends);
    snprintf(labels, sizeof labels,
             "file=\"%s/a\\\"b\\\\c\\nd\xef\xbf\xbd.conf\",idle=\"sleep\","
             "congestion_control=\"cubic\",tls=\"yes\",files=\"yes\",access_log=\"no\"",
             scratch);
    cr_expect_str_eq(value_of("nightjar_config_info", labels), "1");

    atomic_store(&m->reloads.has_failed, true);
    expect_phase(m, NJ_PHASE_YIELD, "phase=\"yield\"");
    cr_expect_str_eq(value_of("nightjar_reload_success", ""), "0");
    finish(m);
}

/* Parts that a server may lack have families without samples. */
Test(mgmt_metrics, a_server_without_files_and_tls_has_the_same_families)
{
    struct metrics_view *m = start();

    parse(m, true);
    uint32_t n = parsed.n_families;
    m->v.store = NULL;
    m->v.reader = NULL;
    m->v.tls = NULL;
    m->v.routes = NULL;
    parse(m, true);
    cr_expect_eq(parsed.n_families, n);
    cr_expect_str_eq(value_of("nightjar_store_hits_total", ""), "");
    finish(m);
}
