/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "pipe.h"

#define ITEM_MAX 128u

struct unit {
    const char *name;
    double factor;
};

static const struct unit METRIC[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {NULL, 0}};
static const struct unit BINARY[] = {{"", 1}, {"K", 1024}, {"M", 1 << 20}, {NULL, 0}};
static const struct unit TIME[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct unit CHANCE[] = {{"", (double)NJ_PIPE_ALWAYS}, {NULL, 0}};
static const struct unit COUNT[] = {{"", 1}, {NULL, 0}};

/* Parses a number with one of the units, from *text up to `stop`, and moves *text past it. False:
 * invalid. */
static bool number(const char **text, const struct unit *units, char stop, uint64_t *out)
{
    char *unit, *end;
    double value = strtod(*text, &unit);

    if (unit == *text || !(value >= 0) || !(end = strchrnul(unit, stop)))
        return false;
    for (; units->name; units++)
        if (strlen(units->name) == (size_t)(end - unit) &&
            memcmp(units->name, unit, (size_t)(end - unit)) == 0) {
            double scaled = value * units->factor;
            *out = (uint64_t)(scaled + 0.5);
            *text = *end ? end + 1 : end;
            return scaled < 1e18 && (units != CHANCE || value <= 1);
        }
    return false;
}

static bool parse_picked(struct nj_pipe_spec *s, const char *value)
{
    uint64_t n;

    while (*value) {
        if (s->n_picked == NJ_PIPE_PICKED_MAX || !number(&value, COUNT, '+', &n))
            return false;
        s->picked[s->n_picked++] = (uint32_t)n;
    }
    return s->n_picked > 0;
}

/* Parses two numbers with a colon between them, as in burst=0.001:5. False: invalid. */
static bool pair(const char *value, const struct unit *a, uint64_t *first, const struct unit *b,
                 uint64_t *second)
{
    return strchr(value, ':') && number(&value, a, ':', first) && number(&value, b, ':', second) &&
           !*value;
}

static bool parse_item(struct nj_pipe_spec *s, const char *name, const char *value)
{
    uint64_t n = 0;

    if (strcmp(name, "rate") == 0)
        return number(&value, METRIC, 0, &s->rate_bps);
    if (strcmp(name, "delay") == 0)
        return number(&value, TIME, 0, &s->delay);
    if (strcmp(name, "queue") == 0)
        return number(&value, BINARY, 0, &s->queue_bytes);
    if (strcmp(name, "loss") == 0)
        return number(&value, CHANCE, 0, &s->loss);
    if (strcmp(name, "dup") == 0)
        return number(&value, CHANCE, 0, &s->duplicate);
    if (strcmp(name, "burst") == 0) {
        bool ok = pair(value, CHANCE, &s->burst, COUNT, &n) && n > 0 && n <= NJ_PIPE_BURST_MAX;
        s->burst_mean = (uint32_t)n;
        return ok;
    }
    if (strcmp(name, "reorder") == 0)
        return pair(value, CHANCE, &s->reorder, TIME, &s->reorder_by);
    if (strcmp(name, "tail") == 0) {
        bool ok = pair(value, COUNT, &n, COUNT, &s->tail_after) && n > 0 && n <= NJ_PIPE_TAIL_MAX;
        s->tail = (uint32_t)n;
        return ok;
    }
    if (strcmp(name, "drop") == 0)
        return parse_picked(s, value);
    s->loss_of_all = strcmp(value, "all") == 0;
    return strcmp(name, "of") == 0 && (s->loss_of_all || strcmp(value, "data") == 0);
}

const char *nj_pipe_parse(struct nj_pipe_spec *spec, const char *text)
{
    char item[ITEM_MAX];

    memset(spec, 0, sizeof *spec);
    while (*text) {
        const char *end = strchrnul(text, ',');
        size_t n = (size_t)(end - text);
        if (n >= sizeof item)
            return text;
        memcpy(item, text, n);
        item[n] = 0;
        char *value = strchr(item, '=');
        if (!value)
            return text;
        *value++ = 0;
        if (!parse_item(spec, item, value))
            return text;
        text = *end ? end + 1 : end;
    }
    return NULL;
}
