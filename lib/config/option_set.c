/* SPDX-License-Identifier: BSD-3-Clause */
/* One table of all configuration fields: name, type, range and section of the policy file. Sets,
 * checks, formats and compares fields by name. */
#include "config/option_set.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error_text.h"
#include "base/limits.h"
#include "base/units.h"
#include "config/policy_file.h"
#include "sched/fiber.h"

enum kind {
    TEXT,   /* const char * */
    LIST,   /* const char *[max]: each call appends one value */
    SWITCH, /* bool; the kinds after it have a range */
    NUMBER, /* of `width` bytes, from min to max */
    SIZE,   /* of `width` bytes */
    RATE,   /* uint64_t */
    TIME,   /* double */
    WORD,   /* an enum: the index of the word in `expected` (separated by '|'), plus min */
};

struct entry {
    struct nj_config_file_key id;
    enum kind kind;
    bool may_be_none; /* "none" means NJ_NONE of that width */
    uint16_t width;
    uint16_t offset;
    double min, max;
    const char *expected;
};

#define FIELD(f) sizeof(((struct nj_server_config *)0)->f), offsetof(struct nj_server_config, f)
#define TIMEOUT  0.1, 86400, "a time such as 500ms or 10s, 100ms to a day"
#define SOME     1, 1 << 30, "a number from 1, or none"
#define ANY_SIZE "a size such as 64KiB or 10MiB, from 1 byte, or none"
#define ANY_RATE 1, NJ_RATE_MAX, NJ_RATE_SYNTAX ", or none"

/* clang-format off */
static const struct entry entries[] = {
    {{"addr", NULL}, LIST, false, FIELD(addr), 0, NJ_SERVER_ADDRS_MAX, NULL},
    {{"gateway", NULL}, LIST, false, FIELD(gateway), 0, NJ_SERVER_GATEWAYS_MAX, NULL},
    {{"route", NULL}, LIST, false, FIELD(route), 0, NJ_SERVER_ROUTES_MAX, NULL},
    {{"neighbour", NULL}, LIST, false, FIELD(neighbour), 0, NJ_SERVER_NEIGHBOURS_MAX, NULL},
    {{"vlan", NULL}, LIST, false, FIELD(vlan), 0, NJ_SERVER_PORTS_MAX, NULL},
    {{"mtu", NULL}, NUMBER, false, FIELD(mtu), NJ_MTU_MIN, NJ_MTU_MAX,
        "a number of bytes from 1280 to 9000"},
    {{"rx-ring", NULL}, NUMBER, false, FIELD(rx_ring), NJ_RING_MIN, NJ_RING_MAX,
        "a number of descriptors from 64 to 8192"},
    {{"tx-ring", NULL}, NUMBER, false, FIELD(tx_ring), NJ_RING_MIN, NJ_RING_MAX,
        "a number of descriptors from 64 to 8192"},
    {{"rss-key", NULL}, TEXT, false, FIELD(rss_key), 0, 0, NULL},
    {{"listen", NULL}, NUMBER, false, FIELD(listen_port), 1, 65535, "a port from 1 to 65535"},
    {{"port", NULL}, LIST, false, FIELD(port), 0, NJ_SERVER_PORTS_MAX, NULL},
    {{"no-offload", NULL}, SWITCH, false, FIELD(no_offload), 0, 0, NULL},
    {{"newreno", NULL}, SWITCH, false, FIELD(newreno), 0, 0, NULL},
    {{"no-ecn", NULL}, SWITCH, false, FIELD(no_ecn), 0, 0, NULL},
    {{"root", NULL}, TEXT, false, FIELD(root), 0, 0, NULL},
    {{"serve-private", NULL}, SWITCH, false, FIELD(serve_private), 0, 0, NULL},
    {{"cache", NULL}, SIZE, false, FIELD(cache_bytes), 0, 1e15, "a size such as 64MiB or 1GiB"},
    {{"max-connections", NULL}, NUMBER, false, FIELD(conns_max), 1, 1 << 24,
        "a number from 1 to 16777216"},
    {{"preface-timeout", NULL}, TIME, false, FIELD(preface_timeout_s), TIMEOUT},
    {{"idle-timeout", NULL}, TIME, false, FIELD(idle_timeout_s), TIMEOUT},
    {{"drain-timeout", NULL}, TIME, false, FIELD(drain_timeout_s), 0, 86400,
        "a time such as 500ms or 10s, at most a day"},
    {{"workers", NULL}, NUMBER, false, FIELD(workers), 1, NJ_WORKERS_MAX, "a number from 1 to 32"},
    {{"fibers", NULL}, NUMBER, false, FIELD(fibers_max), 1, NJ_FIBERS_MAX,
        "a number from 1 to 16384"},
    {{"strategy", NULL}, WORD, false, FIELD(strategy), 0, NJ_RUN_PEC, "ewyk|pc|pec"},
    {{"idle", NULL}, WORD, false, FIELD(idle), 0, NJ_IDLE_INTERRUPT, "sleep|spin|pause|interrupt"},
    {{"busy-poll", NULL}, SWITCH, false, FIELD(busy_poll), 0, 0, NULL},
    {{"live", NULL}, SWITCH, false, FIELD(live), 0, 0, NULL},

    {{"config", NULL}, TEXT, false, FIELD(policy_file), 0, 0, NULL},
    {{"rate", NULL}, RATE, true, FIELD(rate), ANY_RATE},
    {{"rate-per-client", NULL}, RATE, true, FIELD(rate_per_client), ANY_RATE},
    {{"rate-per-request", NULL}, RATE, true, FIELD(rate_per_request), ANY_RATE},
    {{"rate-after", NULL}, SIZE, true, FIELD(rate_after), 1, 1e15, ANY_SIZE},
    {{"connections-per-client", NULL}, NUMBER, true, FIELD(connections_per_client), SOME},
    {{"streams-per-client", NULL}, NUMBER, true, FIELD(streams_per_client), SOME},
    {{"requests-per-client", NULL}, NUMBER, true, FIELD(requests_per_client), SOME},
    {{"trusted-proxy", NULL}, LIST, false, FIELD(trusted_proxy), 0, NJ_SERVER_TRUSTED_MAX, NULL},

    {{"max-body", "limits"}, SIZE, true, FIELD(max_body), 1, 1e15, ANY_SIZE},
    {{"max-header-size", "limits"}, SIZE, false, FIELD(max_header_size), 1024, 32 * 1024,
        "a size from 1KiB to 32KiB"},
    {{"max-headers", "limits"}, NUMBER, false, FIELD(max_headers), 8, 128,
        "a number from 8 to 128"},
    {{"header-timeout", "limits"}, TIME, false, FIELD(header_timeout_s), TIMEOUT},
    {{"body-timeout", "limits"}, TIME, false, FIELD(body_timeout_s), TIMEOUT},
    {{"send-timeout", "limits"}, TIME, false, FIELD(send_timeout_s), TIMEOUT},
    {{"min-rate", "limits"}, RATE, true, FIELD(min_rate), ANY_RATE},
    {{"min-upload-rate", "limits"}, RATE, true, FIELD(min_upload_rate), ANY_RATE},
    {{"body-deadline", "limits"}, TIME, false, FIELD(body_deadline_s), TIMEOUT},

    {{"index", "files"}, TEXT, false, FIELD(index), 0, 0, NULL},
    {{"listing", "files"}, SWITCH, false, FIELD(listing), 0, 0, NULL},
    {{"no-precompressed", "files"}, SWITCH, false, FIELD(no_precompressed), 0, 0, NULL},
    {{"mime-types", "files"}, TEXT, false, FIELD(mime_types), 0, 0, NULL},
    {{"cache-control", "files"}, TEXT, false, FIELD(cache_control), 0, 0, NULL},
    {{"error-page", "files"}, LIST, false, FIELD(error_page), 0, NJ_SERVER_ERROR_PAGES_MAX, NULL},
    {{"symlinks", "files"}, WORD, false, FIELD(symlinks), 1, NJ_SYMLINKS_BENEATH,
        "none|owner|beneath"},
    {{"file-reads", NULL}, WORD, false, FIELD(file_reads), 1, NJ_FILE_READS_THREADS,
        "auto|direct|buffered|threads"},

    {{"access-log", "log"}, TEXT, false, FIELD(access_log), 0, 0, NULL},
    {{"log-format", "log"}, WORD, false, FIELD(log_format), 1, NJ_LOG_JSON, "combined|json"},
};
/* clang-format on */

static const struct entry *find_option(const char *name)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(entries); i++)
        if (strcmp(entries[i].id.name, name) == 0)
            return &entries[i];
    return NULL;
}

const struct nj_config_file_key *nj_config_file_key_at(uint32_t i)
{
    for (size_t k = 0; k < NJ_ARRAY_LEN(entries); k++)
        if (entries[k].id.section && i-- == 0)
            return &entries[k].id;
    return NULL;
}

static void put(const struct entry *e, void *at, uint64_t value)
{
    memcpy(at, &value, e->width); /* little endian */
}

static bool in_range(const struct entry *e, double value)
{
    return value >= e->min && value <= e->max;
}

/* Append a value to a list. */
static bool append_value(const struct entry *e, const char **list, const char *value)
{
    uint32_t n = 0;

    while (n < (uint32_t)e->max && list[n])
        n++;
    if (n == (uint32_t)e->max)
        return false;
    list[n] = value;
    return true;
}

static bool put_word(const struct entry *e, void *at, const char *value)
{
    uint64_t place = (uint64_t)e->min;

    for (const char *word = e->expected; *word; place++) {
        size_t n = strcspn(word, "|");
        if (strlen(value) == n && memcmp(word, value, n) == 0) {
            put(e, at, place);
            return true;
        }
        word += n + (word[n] == '|');
    }
    return false;
}

static bool put_number(const struct entry *e, void *at, const char *value)
{
    uint64_t number = 0;
    bool ok;

    if (e->may_be_none && strcmp(value, "none") == 0) {
        put(e, at, UINT64_MAX);
        return true;
    }
    if (e->kind == RATE)
        ok = nj_parse_rate(value, &number);
    else if (e->kind == SIZE)
        ok = nj_parse_bytes(value, &number);
    else
        ok = nj_parse_number(value, &number);
    if (!ok || !in_range(e, (double)number))
        return false;
    put(e, at, number);
    return true;
}

static bool put_value(const struct entry *e, struct nj_server_config *c, const char *value)
{
    void *at = (char *)c + e->offset;
    double seconds;

    switch (e->kind) {
    case TEXT:
        memcpy(at, &value, sizeof value);
        return true;
    case LIST:
        return append_value(e, at, value);
    case SWITCH:
        *(bool *)at = true;
        return true;
    case NUMBER:
    case SIZE:
    case RATE:
        return put_number(e, at, value);
    case TIME:
        if (!nj_parse_seconds(value, &seconds) || !in_range(e, seconds))
            return false;
        memcpy(at, &seconds, sizeof seconds);
        return true;
    case WORD:
        return put_word(e, at, value);
    default:
        return false;
    }
}

/* "a, b or c" from "a|b|c"; other kinds have a ready text. */
static void format_expected(const struct entry *e, char *text, size_t n_text)
{
    if (e->kind == LIST) {
        snprintf(text, n_text, "at most %u of them", (unsigned)e->max);
        return;
    }
    size_t at = 0;
    const char *last = e->kind == WORD ? strrchr(e->expected, '|') : NULL;
    for (const char *p = e->expected; *p && at + 8 < n_text; p++) {
        const char *as = e->kind != WORD || *p != '|' ? NULL : p == last ? " or " : ", ";
        at += (size_t)snprintf(text + at, n_text - at, as ? "%s" : "%.1s", as ? as : p);
    }
    text[at] = '\0';
}

int nj_server_config_takes(const char *name)
{
    const struct entry *e = find_option(name);
    return e ? e->kind != SWITCH : -1;
}

struct names {
    const char *const *more;
};

static const char *name_at(void *ctx, uint32_t i)
{
    const struct names *names = ctx;

    if (i < NJ_ARRAY_LEN(entries))
        return entries[i].id.name;
    return names->more ? names->more[i - NJ_ARRAY_LEN(entries)] : NULL;
}

const char *nj_server_config_near(const char *name, const char *const *more)
{
    return nj__policy_closest_name(name, name_at, &(struct names){more});
}

int nj_server_config_set(struct nj_server_config *c, const char *name, const char *value, char *why,
                         size_t n)
{
    const struct entry *e = find_option(name);
    char expected[160];

    if (!e)
        return nj_set_error(why, n, "--%s: there is no such option", name);
    if (!value && e->kind != SWITCH)
        return nj_set_error(why, n, "--%s: expected a value", name);
    if (put_value(e, c, value))
        return 0;
    format_expected(e, expected, sizeof expected);
    return nj_set_error(why, n, "--%s %s: expected %s", name, value, expected);
}

/* Is the field set, that is, not 0? */
static bool is_set(const struct nj_server_config *c, const struct entry *e)
{
    static const char nothing[8];

    size_t n = e->kind == LIST ? sizeof(char *) : e->width;
    return memcmp((const char *)c + e->offset, nothing, n) != 0;
}

bool nj_config_is_set(const struct nj_server_config *config, const char *name)
{
    const struct entry *e = find_option(name);
    return e && is_set(config, e);
}

static uint64_t load_number(const struct entry *e, const void *at)
{
    uint64_t v8 = 0;

    memcpy(&v8, at, e->width); /* little endian */
    return v8;
}

static bool is_none(const struct entry *e, const void *at)
{
    return e->may_be_none && load_number(e, at) == UINT64_MAX >> (64 - 8 * e->width);
}

/* Reports the range in the unit of the field. */
static int out_of_range(const struct entry *e, char *why, size_t n)
{
    char expected[160], min[24], max[24];

    format_expected(e, expected, sizeof expected);
    if (e->kind == RATE)
        return nj_set_error(why, n, "--%s: expected " NJ_RATE_SYNTAX, e->id.name);
    if (e->kind == WORD)
        return nj_set_error(why, n, "--%s: expected %s", e->id.name, expected);
    nj_format_number(e->min, min, sizeof min);
    nj_format_number(e->max, max, sizeof max);
    return nj_set_error(why, n, "--%s: expected %s to %s%s", e->id.name, min, max,
                        e->kind == TIME   ? " seconds"
                        : e->kind == SIZE ? " bytes"
                                          : "");
}

int nj_config_check_ranges(const struct nj_server_config *config, char *why, size_t n)
{
    struct nj_server_config defaults;

    nj_server_config_init(&defaults);
    for (const struct entry *e = entries; e < entries + NJ_ARRAY_LEN(entries); e++) {
        const void *at = (const char *)config + e->offset;
        bool is_left_out = !is_set(config, e) && !is_set(&defaults, e);
        if (e->kind <= SWITCH || is_left_out || is_none(e, at))
            continue;
        double value = (double)load_number(e, at);
        if (e->kind == TIME)
            memcpy(&value, at, sizeof value);
        if (!in_range(e, value))
            return out_of_range(e, why, n);
    }
    return 0;
}

/* The word with that index. */
static void show_word(const struct entry *e, uint64_t place, char *text, size_t n)
{
    const char *word = e->expected;

    for (uint64_t i = (uint64_t)e->min; i < place && *word; i++)
        word += strcspn(word, "|") + 1;
    snprintf(text, n, "%.*s", (int)strcspn(word, "|"), word);
}

bool nj_config_format(const struct nj_server_config *config, const char *name, char *text, size_t n)
{
    const struct entry *e = find_option(name);
    const void *at = e ? (const char *)config + e->offset : NULL;
    const char *const *list = at;
    size_t put = 0;
    double seconds;

    if (!e || !is_set(config, e))
        return false;
    if (is_none(e, at)) {
        snprintf(text, n, "none");
    } else if (e->kind == SWITCH) {
        snprintf(text, n, "yes");
    } else if (e->kind == NUMBER) {
        snprintf(text, n, "%llu", (unsigned long long)load_number(e, at));
    } else if (e->kind == SIZE) {
        nj_format_bytes(load_number(e, at), text, n);
    } else if (e->kind == RATE) {
        nj_format_rate(load_number(e, at), text, n);
    } else if (e->kind == WORD) {
        show_word(e, load_number(e, at), text, n);
    } else if (e->kind == TIME) {
        memcpy(&seconds, at, sizeof seconds);
        nj_format_seconds(seconds, text, n);
    } else {
        for (size_t i = 0; i < (e->kind == LIST ? (size_t)e->max : 1) && list[i] && put < n; i++)
            put += (size_t)snprintf(text + put, n - put, "%s%s", i ? ", " : "", list[i]);
    }
    return true;
}

void nj_config_fill_unset(struct nj_server_config *c, const struct nj_server_config *file)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(entries); i++)
        if (entries[i].id.section && !is_set(c, &entries[i]))
            memcpy((char *)c + entries[i].offset, (const char *)file + entries[i].offset,
                   entries[i].width);
}

static bool texts_equal(const char *const *a, const char *const *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!a[i] || !b[i] ? a[i] != b[i] : strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

bool nj_config_file_keys_equal(const struct nj_server_config *a, const struct nj_server_config *b)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(entries); i++) {
        const struct entry *e = &entries[i];
        const void *x = (const char *)a + e->offset, *y = (const char *)b + e->offset;
        bool texts = e->kind == TEXT || e->kind == LIST;
        if (e->id.section && (texts ? !texts_equal(x, y, e->kind == LIST ? (size_t)e->max : 1)
                                    : memcmp(x, y, e->width) != 0))
            return false;
    }
    return true;
}

int nj_config_set_from_file(struct nj_server_config *c, const char *name, const char *value,
                            char *why, size_t n)
{
    const struct entry *e = find_option(name);
    char expected[160];

    if (e->kind == SWITCH) {
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
            return nj_set_error(why, n, "yes or no");
        if (value[0] == 'y')
            put_value(e, c, NULL);
        return 0;
    }
    if (put_value(e, c, value))
        return 0;
    format_expected(e, expected, sizeof expected);
    return nj_set_error(why, n, "%s", expected);
}
