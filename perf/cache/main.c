/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-cache: hit ratios of cache policies on one trace, which is made from a seed or read from
 * standard input. Prints a line of JSON for each policy and budget. perf/bench/cache.py runs it
 * with many traces.
 *
 *     nj-cache POLICY,... BUDGET[%|MiB],... KEY=NUMBER ...
 *     nj-cache POLICY,... BUDGET[%|MiB],... - < TRACE
 *
 * `known` has the keys. The first half of the clients' lookups fills the cache and is not counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "sim.h"

static const struct sim_policy *const policies[] = {
    &sim_lru, &sim_former, &sim_trial, &sim_sieve, &sim_tinylfu, &sim_s3fifo, &sim_offline,
};

struct keys {
    double seed, zipf, log_uniform, file_bytes, footprint_mib, looks, range_percent, crawls, shifts,
        shift_percent;
};

static const struct {
    const char *name;
    size_t offset;
    double most;
} known[] = {
    {"seed", offsetof(struct keys, seed), 1e15},
    {"zipf", offsetof(struct keys, zipf), 5},
    {"log_uniform", offsetof(struct keys, log_uniform), 1},
    {"file_bytes", offsetof(struct keys, file_bytes), (double)SIM_FILE_MOST},
    {"footprint_mib", offsetof(struct keys, footprint_mib), 1048576},
    {"looks", offsetof(struct keys, looks), 1e8},
    {"range_percent", offsetof(struct keys, range_percent), 100},
    {"crawls", offsetof(struct keys, crawls), 100},
    {"shifts", offsetof(struct keys, shifts), 10000},
    {"shift_percent", offsetof(struct keys, shift_percent), 100},
};

struct ratio {
    uint64_t n_all, n_hit;
};

struct result {
    struct ratio requests; /* of clients; a hit: all entries of the request were in the cache */
    struct ratio bytes;    /* of lookups of clients */
    struct ratio middle;   /* `bytes` from the middle on, for as many lookups as a crawl has */
    uint32_t n_lookups;    /* of clients, so far */
    bool has_missed[SIM_CRAWL]; /* of each reader: in its current request */
};

static void add(struct ratio *r, uint64_t n, bool hit)
{
    r->n_all += n;
    r->n_hit += hit ? n : 0;
}

static void count(struct result *r, const struct sim_trace *t, const struct sim_lookup *lookup,
                  bool hit)
{
    uint32_t n_bytes = t->n_bytes[lookup->entry], half = t->n_client_lookups / 2;
    bool *has_missed = &r->has_missed[lookup->reader];

    if (!hit)
        *has_missed = true;
    if (r->n_lookups >= half) {
        add(&r->bytes, n_bytes, hit);
        if (lookup->is_last)
            add(&r->requests, 1, !*has_missed);
        if (r->n_lookups - half < t->n_entries)
            add(&r->middle, n_bytes, hit);
    }
    r->n_lookups++;
    if (lookup->is_last)
        *has_missed = false;
}

static struct result run(const struct sim_policy *policy, const struct sim_trace *t,
                         uint64_t budget)
{
    struct result r = {.n_lookups = 0};
    void *self = policy->make(t, budget);

    for (uint32_t i = 0; i < t->n_lookups; i++) {
        bool hit = policy->lookup(self, i);
        if (t->lookups[i].reader != SIM_CRAWL)
            count(&r, t, &t->lookups[i], hit);
    }
    policy->free(self);
    return r;
}

static double percent(struct ratio r)
{
    return r.n_all ? 100.0 * (double)r.n_hit / (double)r.n_all : 0;
}

/* --- arguments -------------------------------------------------------------------------------- */

static void fail(const char *error, const char *word)
{
    fprintf(stderr, "nj-cache: %s: %s\n", word, error);
    exit(2);
}

static double number(const char *word, const char **end)
{
    char *stop;

    errno = 0;
    double n = strtod(word, &stop);
    if (stop == word || errno || !(n >= 0))
        fail("not a number", word);
    *end = stop;
    return n;
}

static void set(struct keys *keys, const char *word)
{
    const char *end, *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : 0;

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(known); i++) {
        if (strlen(known[i].name) != n || strncmp(known[i].name, word, n) != 0)
            continue;
        double value = number(equals + 1, &end);
        if (*end || value > known[i].most)
            fail("not a number, or above the maximum of the key", word);
        *(double *)((char *)keys + known[i].offset) = value;
        return;
    }
    fail("not KEY=NUMBER with a key of nj-cache", word);
}

static void make_trace(struct sim_trace *t, char **words)
{
    struct keys k = {.seed = 1, .zipf = 1, .footprint_mib = 20480, .looks = 4e6};

    for (; *words; words++)
        set(&k, *words);
    struct sim_kind kind = {
        .zipf = k.zipf,
        .log_uniform = k.log_uniform > 0,
        .file_bytes = (uint64_t)k.file_bytes,
        .footprint = (uint64_t)(k.footprint_mib * 1048576),
        .n_lookups = (uint32_t)k.looks,
        .range_percent = (uint32_t)k.range_percent,
        .n_crawls = (uint32_t)k.crawls,
        .n_shifts = (uint32_t)k.shifts,
        .shift_percent = (uint32_t)k.shift_percent,
    };
    if (kind.footprint == 0 || kind.n_lookups <= kind.n_crawls || kind.n_lookups <= kind.n_shifts)
        fail("no footprint, or too few lookups", "footprint_mib, looks, crawls, shifts");
    sim_trace_make(t, &kind, (uint64_t)k.seed);
}

/* The minimum budget in bytes with which each entry fits in the cache of each policy. `former` has
 * four fifths of the budget for small files and one fifth for chunks of large files. */
static double least_budget(const struct sim_trace *t)
{
    double least = SIM_PAGE_BYTES;

    for (uint32_t i = 0; i < t->n_entries; i++) {
        double n = t->n_bytes[i] * (t->is_large[i] ? 5 : 1.25);
        least = n > least ? n : least;
    }
    return least;
}

static uint64_t budget_of(const char *word, const struct sim_trace *t)
{
    const char *unit;
    double bytes = number(word, &unit);

    if (strcmp(unit, "%") == 0)
        bytes *= (double)t->footprint / 100;
    else if (strcmp(unit, "MiB") == 0)
        bytes *= 1048576;
    else
        fail("not a budget; a budget is like 5% or 1024MiB", word);
    if (bytes < least_budget(t) || bytes > 1e15)
        fail("too small for the largest cache entry, or too large", word);
    return (uint64_t)bytes;
}

static const struct sim_policy *policy_of(const char *name)
{
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(policies); i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    fail("not a policy", name);
    return NULL;
}

static void run_all(const struct sim_trace *t, const char *budget, const char *names)
{
    uint64_t n_bytes = budget_of(budget, t);
    char *copy = strdup(names), *at = NULL;

    for (char *name = strtok_r(copy, ",", &at); name; name = strtok_r(NULL, ",", &at)) {
        struct result r = run(policy_of(name), t, n_bytes);
        printf("{\"policy\": \"%s\", \"budget\": \"%s\", \"requests\": %.3f, \"bytes\": %.3f, "
               "\"middle\": %.3f, \"n_requests\": %" PRIu32 ", \"n_files\": %" PRIu32
               ", \"footprint\": %" PRIu64 "}\n",
               name, budget, percent(r.requests), percent(r.bytes), percent(r.middle),
               t->n_requests, t->n_files, t->footprint);
    }
    free(copy);
}

int main(int argc, char **argv)
{
    struct sim_trace t;
    char why[128], *at = NULL;

    if (argc < 4)
        fail("usage: nj-cache POLICY,... BUDGET,... KEY=NUMBER ... | -", "arguments");
    if (strcmp(argv[3], "-") != 0)
        make_trace(&t, argv + 3);
    else if (!sim_trace_read(&t, stdin, why, sizeof why))
        fail(why, "standard input");
    for (char *budget = strtok_r(argv[2], ",", &at); budget; budget = strtok_r(NULL, ",", &at))
        run_all(&t, budget, argv[1]);
    sim_trace_free(&t);
    return 0;
}
