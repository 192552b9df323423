/* SPDX-License-Identifier: BSD-3-Clause */
/* Table of the limit keys of a class: name, type and offset in struct nj_class. Parses, merges,
 * applies and formats them (docs/policy.md). */
#include "config/class_limit_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/units.h"

enum kind { RATE, SIZE, NUMBER, SECONDS, ACTION };

/* A struct nj_limit has three consecutive members: rate, ceiling, burst. */
#define LIMIT(prefix, member, bit)                                                                 \
    {prefix "rate", RATE, offsetof(struct nj_class, member.rate), bit},                            \
        {prefix "ceiling", RATE, offsetof(struct nj_class, member.ceiling), bit},                  \
    {                                                                                              \
        prefix "burst", SIZE, offsetof(struct nj_class, member.burst), bit                         \
    }

static const struct key {
    const char *name;
    enum kind kind;
    uint16_t offset;
    bool is_server_wide;
} class_key_table[] = {
    LIMIT("", total, true),
    LIMIT("client_", client, false),
    LIMIT("request_", request, false),
    {"rate_after", SIZE, offsetof(struct nj_class, rate_after), false},
    {"connections", NUMBER, offsetof(struct nj_class, caps.conns_max), false},
    {"streams", NUMBER, offsetof(struct nj_class, caps.streams_max), false},
    {"requests", NUMBER, offsetof(struct nj_class, caps.requests_per_s), false},
    {"requests_burst", NUMBER, offsetof(struct nj_class, caps.requests_burst), false},
    {"action", ACTION, offsetof(struct nj_class, action), false},
    {"retry_after", SECONDS, offsetof(struct nj_class, retry_after_s), false},
};

/* Index of the first of three keys of each struct nj_limit. */
static const uint32_t limit_first_key[] = {0, 3, 6};

#define BURST_MIN (2u * NJ_QUANTUM_MIN_BYTES)

static const char *const actions[] = {"serve", "drop", "reset", "forbid", "429"};

_Static_assert(NJ_ARRAY_LEN(class_key_table) <= 32, "a bit for each");

uint32_t nj_class_keys_count(void)
{
    return NJ_ARRAY_LEN(class_key_table);
}

const char *nj_class_key_name(uint32_t i)
{
    return class_key_table[i].name;
}

bool nj_class_key_allowed_for_server(uint32_t i)
{
    return class_key_table[i].is_server_wide;
}

int nj_class_key_find(const char *name)
{
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(class_key_table); i++)
        if (strcmp(class_key_table[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool is_burst(const struct key *k)
{
    size_t n = strlen(k->name);
    return k->kind == SIZE && n >= 5 && strcmp(k->name + n - 5, "burst") == 0;
}

static bool parse_action(const char *value, uint64_t *out)
{
    if (strcmp(value, "later") == 0) /* the former word for 429 */
        value = "429";
    for (*out = 0; *out < NJ_ARRAY_LEN(actions); (*out)++)
        if (strcmp(actions[*out], value) == 0)
            return true;
    return false;
}

static bool read_key(const struct key *k, const char *value, uint64_t *out, const char **expected)
{
    bool lacks_unit = nj_lacks_unit(value);
    double seconds = 0;

    switch (k->kind) {
    case RATE:
        *expected = lacks_unit ? "a unit: B/s, KiB/s, MiB/s, GiB/s, kbit/s, Mbit/s or Gbit/s"
                               : NJ_RATE_SYNTAX ", or none";
        return !lacks_unit && nj_parse_rate(value, out);
    case SIZE:
        *expected = lacks_unit    ? "a unit: B, KiB, MiB or GiB"
                    : is_burst(k) ? "a size such as 64KiB, from 5840 bytes to 1GiB, or none"
                                  : "a size such as 64KiB, or none";
        return !lacks_unit && nj_parse_bytes(value, out) &&
               (!is_burst(k) || (*out >= BURST_MIN && *out <= 1u << 30));
    case NUMBER:
        *expected = "a number from 1 to 1000000, or none";
        return nj_parse_decimal(value, out) && *out >= 1 && *out <= 1000000;
    case SECONDS:
        *expected = lacks_unit ? "a unit: s, m or h" : "a time such as 30s or 5m, 1 s to a day";
        *out = nj_parse_seconds(value, &seconds) && seconds <= 86400 ? (uint64_t)seconds : 0;
        return !lacks_unit && *out > 0;
    case ACTION:
        *expected = "serve, drop, reset, forbid or 429";
        return parse_action(value, out);
    default:
        return false;
    }
}

static size_t value_bytes(const struct key *k)
{
    return k->kind == RATE || k->kind == SIZE ? sizeof(uint64_t) : sizeof(uint32_t);
}

_Static_assert(sizeof(enum nj_action) == sizeof(uint32_t), "as wide as a number");
_Static_assert(BURST_MIN == 5840, "as the text says");

bool nj_class_key_parse(struct nj_class_keys *keys, uint32_t i, const char *value,
                        const char **expected)
{
    const struct key *k = &class_key_table[i];
    uint64_t v = 0;
    bool none = strcmp(value, "none") == 0 && k->kind != ACTION && k->kind != SECONDS;

    if (!read_key(k, value, &v, expected)) {
        if (!none)
            return false;
        v = 0;
    }
    uint32_t v4 = (uint32_t)v;
    memcpy((char *)&keys->value + k->offset, value_bytes(k) == 8 ? (void *)&v : (void *)&v4,
           value_bytes(k));
    keys->set |= 1u << i;
    return true;
}

static const struct nj_limit *limit_of_key(const struct nj_class *c, uint32_t at)
{
    return (const struct nj_limit *)((const char *)c + class_key_table[at].offset);
}

bool nj_class_keys_check(const struct nj_class_keys *keys, const char **wrong)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(limit_first_key); i++) {
        const struct nj_limit *l = limit_of_key(&keys->value, limit_first_key[i]);
        uint32_t both = 3u << limit_first_key[i];
        if ((keys->set & both) == both && l->ceiling != 0 && l->rate > l->ceiling) {
            *wrong = i == 0   ? "rate must not exceed ceiling"
                     : i == 1 ? "client_rate must not exceed client_ceiling"
                              : "request_rate must not exceed request_ceiling";
            return false;
        }
    }
    return true;
}

void nj_class_keys_apply(const struct nj_class_keys *keys, struct nj_class *to)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(limit_first_key); i++) {
        struct nj_limit *l = (struct nj_limit *)limit_of_key(to, limit_first_key[i]);
        if (keys->set >> limit_first_key[i] & 1)
            *l = (struct nj_limit){.ceiling = limit_of_key(&keys->value, limit_first_key[i])->rate};
    }
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(class_key_table); i++)
        if (keys->set >> i & 1)
            memcpy((char *)to + class_key_table[i].offset,
                   (const char *)&keys->value + class_key_table[i].offset,
                   value_bytes(&class_key_table[i]));
    for (size_t i = 0; i < NJ_ARRAY_LEN(limit_first_key); i++) {
        struct nj_limit *l = (struct nj_limit *)limit_of_key(to, limit_first_key[i]);
        if (l->ceiling != 0 && l->rate > l->ceiling)
            l->rate = l->ceiling;
    }
}

void nj_class_keys_merge(struct nj_class_keys *to, const struct nj_class_keys *later)
{
    /* A later rate also sets the ceiling, and drops the burst of the earlier rate. */
    for (size_t i = 0; i < NJ_ARRAY_LEN(limit_first_key); i++)
        if (later->set >> limit_first_key[i] & 1)
            to->set &= ~(7u << limit_first_key[i]);
    to->set |= later->set;
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(class_key_table); i++)
        if (later->set >> i & 1)
            memcpy((char *)&to->value + class_key_table[i].offset,
                   (const char *)&later->value + class_key_table[i].offset,
                   value_bytes(&class_key_table[i]));
}

void nj_class_copy_inherited_limits(struct nj_class *to, const struct nj_class *from)
{
    to->client = from->client;
    to->request = from->request;
    to->rate_after = from->rate_after;
    to->caps = from->caps;
}

const char *nj_class_key_format(const struct nj_class *c, uint32_t i, char *text, size_t n_text)
{
    const struct key *k = &class_key_table[i];
    const char *at = (const char *)c + k->offset;
    uint64_t v8 = 0;
    uint32_t v4 = 0;

    memcpy(value_bytes(k) == 8 ? (void *)&v8 : (void *)&v4, at, value_bytes(k));
    if (v8 == 0 && v4 == 0)
        return NULL;
    if (k->kind == ACTION)
        return actions[v4];
    if (k->kind == RATE)
        nj_format_rate(v8, text, n_text);
    else if (value_bytes(k) == 8)
        nj_format_bytes(v8, text, n_text);
    else
        snprintf(text, n_text, k->kind == SECONDS ? "%us" : "%u", v4);
    return text;
}
