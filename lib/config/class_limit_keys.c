/* SPDX-License-Identifier: BSD-3-Clause */
/* Table of the limit keys of a class: name, type and offset in struct nj_class. Parses, merges,
 * applies and formats them (docs/policy.md). */
#include "config/class_limit_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/units.h"
#include "config/config_by_name.h"

#define BURST_MIN (2u * NJ_QUANTUM_MIN_BYTES)

#define AT(f) .width = sizeof(((struct nj_class *)0)->f), .offset = offsetof(struct nj_class, f)
#define RATE(f)                                                                                    \
    .kind = NJ_OPTION_RATE, AT(f), .min = 1, .max = NJ_RATE_MAX, .expected = NJ_RATE_SYNTAX,       \
    .may_be_none = true
#define SIZE(f, least, most)                                                                       \
    .kind = NJ_OPTION_SIZE, AT(f), .min = least, .max = most, .expected = "a size such as 64KiB",  \
    .may_be_none = true
#define NUMBER(f)                                                                                  \
    .kind = NJ_OPTION_NUMBER, AT(f), .min = 1, .max = 1000000, .expected = "a number",             \
    .may_be_none = true
/* The i-th struct nj_limit has keys 3 * i to 3 * i + 2. */
#define N_LIMITS 3u
#define LIMIT(prefix, limit)                                                                       \
    {.name = prefix "rate", RATE(limit.rate)}, {.name = prefix "ceiling", RATE(limit.ceiling)},    \
    {                                                                                              \
        .name = prefix "burst", SIZE(limit.burst, BURST_MIN, 1 << 30)                              \
    }

/* clang-format off */
static const struct nj_option class_key_table[] = {
    LIMIT("", total),
    LIMIT("client_", client),
    LIMIT("request_", request),
    {.name = "rate_after", SIZE(rate_after, 0, NJ_BYTES_MAX)},
    {.name = "connections", NUMBER(caps.conns_max)},
    {.name = "streams", NUMBER(caps.streams_max)},
    {.name = "requests", NUMBER(caps.requests_per_s)},
    {.name = "requests_burst", NUMBER(caps.requests_burst)},
    {.name = "action", .kind = NJ_OPTION_WORD, AT(action),
     .expected = "serve|drop|reset|forbid|429"},
    {.name = "retry_after", .kind = NJ_OPTION_TIME, AT(retry_after_s), .min = 1, .max = 86400,
     .expected = "a time such as 30s or 5m"},
};
/* clang-format on */

_Static_assert(NJ_ARRAY_LEN(class_key_table) <= 32, "a bit for each");

const char *nj_class_key_name(uint32_t i)
{
    return i < NJ_ARRAY_LEN(class_key_table) ? class_key_table[i].name : NULL;
}

bool nj_class_key_allowed_for_server(uint32_t i)
{
    return i < 3;
}

int nj_class_key_find(const char *name)
{
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(class_key_table); i++)
        if (strcmp(class_key_table[i].name, name) == 0)
            return (int)i;
    return -1;
}

uint32_t nj_class_key_limit(uint32_t i)
{
    return i < 3 * N_LIMITS ? 7u << i / 3 * 3 : 1u << i;
}

static struct nj_limit *limit_of(struct nj_class *c, uint32_t i)
{
    return i == 0 ? &c->total : i == 1 ? &c->client : &c->request;
}

static void copy_values(struct nj_class *to, const struct nj_class_keys *from)
{
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(class_key_table); i++)
        if (from->set >> i & 1)
            memcpy((char *)to + class_key_table[i].offset,
                   (const char *)&from->value + class_key_table[i].offset,
                   class_key_table[i].width);
}

bool nj_class_key_parse(struct nj_class_keys *keys, uint32_t i, const char *value, char *expected,
                        size_t n)
{
    const struct nj_option *k = &class_key_table[i];
    bool is_none = k->may_be_none && strcmp(value, "none") == 0;
    double v = 0;

    if (k->kind == NJ_OPTION_WORD && strcmp(value, "later") == 0) /* the former word for it */
        value = "429";
    if (!is_none && !nj_option_parse_number(k, value, &v)) {
        nj_option_format_expected(k, value, expected, n);
        return false;
    }
    uint64_t number = (uint64_t)v;
    memcpy((char *)&keys->value + k->offset, &number, k->width); /* little endian */
    keys->set |= 1u << i;
    return true;
}

const char *nj_class_keys_error(const struct nj_class_keys *keys)
{
    static const char *const texts[N_LIMITS] = {"rate must not exceed ceiling",
                                                "client_rate must not exceed client_ceiling",
                                                "request_rate must not exceed request_ceiling"};
    struct nj_class c = keys->value;

    for (uint32_t i = 0; i < N_LIMITS; i++) {
        const struct nj_limit *l = limit_of(&c, i);
        if ((keys->set >> 3 * i & 3) == 3 && l->ceiling != 0 && l->rate > l->ceiling)
            return texts[i];
    }
    return NULL;
}

void nj_class_keys_apply(const struct nj_class_keys *keys, struct nj_class *to)
{
    struct nj_class from = keys->value;

    for (uint32_t i = 0; i < N_LIMITS; i++)
        if (keys->set >> 3 * i & 1)
            *limit_of(to, i) = (struct nj_limit){.ceiling = limit_of(&from, i)->rate};
    copy_values(to, keys);
    for (uint32_t i = 0; i < N_LIMITS; i++) {
        struct nj_limit *l = limit_of(to, i);
        if (l->ceiling != 0 && l->rate > l->ceiling)
            l->rate = l->ceiling;
    }
}

void nj_class_keys_apply_options(const struct nj_server_config *c, const char *section,
                                 struct nj_class *to)
{
    struct nj_class_keys keys = {0};

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        uint64_t v = 0;
        if (!o->in_policy || o->kind == NJ_OPTION_LIST || strcmp(o->section, section) != 0)
            continue;
        int i = nj_class_key_find(o->key);
        memcpy(&v, (const char *)c + o->offset, o->width); /* little endian */
        keys.set |= v != 0 ? 1u << i : 0;
        v = v == UINT64_MAX >> (64 - 8 * o->width) ? 0 : v; /* none */
        memcpy((char *)&keys.value + class_key_table[i].offset, &v, o->width);
    }
    nj_class_keys_apply(&keys, to);
}

void nj_class_keys_merge(struct nj_class_keys *to, const struct nj_class_keys *later)
{
    /* A later rate also sets the ceiling, and drops the burst of the earlier rate. */
    for (uint32_t i = 0; i < N_LIMITS; i++)
        if (later->set >> 3 * i & 1)
            to->set &= ~(7u << 3 * i);
    to->set |= later->set;
    copy_values(&to->value, later);
}

const char *nj_class_key_format(const struct nj_class *c, uint32_t i, char *text, size_t n_text)
{
    const struct nj_option *k = &class_key_table[i];
    uint64_t v = 0;

    memcpy(&v, (const char *)c + k->offset, k->width); /* little endian */
    if (v == 0)
        return NULL;
    if (k->kind == NJ_OPTION_TIME)
        snprintf(text, n_text, "%us", (unsigned)v);
    else
        nj_option_format_value(k, (double)v, text, n_text);
    return text;
}
