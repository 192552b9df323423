/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces. Each lookup of a client is that of a random reader. A reader looks up the entries of its
 * request in order, then draws its next request. So requests are interleaved, as a server's clients
 * interleave theirs. A crawl looks up each entry once, in order, one after each lookup of a client.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim.h"

#define READERS      100u
#define FILES_MAX    200000u
/* The log-normal distribution of sizes. */
#define MEDIAN_BYTES (1024.0 * 1024.0)
#define SIGMA        2.2
/* The log-uniform distribution of the sizes of ranges. */
#define RANGE_LEAST  (64.0 * 1024.0)
#define RANGE_MOST   (16.0 * 1024.0 * 1024.0)

struct reader {
    uint32_t next, end; /* entries of the request: the next lookup, and one past the last */
};

struct maker {
    struct sim_trace *t;
    const struct sim_kind *kind;
    struct nj_prng r;
    uint32_t *first;   /* the first entry of each file, and one past the last entry */
    uint32_t *of_rank; /* the file of each rank */
    double *sum;       /* of each rank: the sum of the weights up to it */
    struct reader readers[READERS];
    struct reader crawl;
};

static double normal(struct nj_prng *r)
{
    return sqrt(-2 * log(sim_uniform(r))) * cos(2 * M_PI * sim_uniform(r));
}

static double log_between(struct nj_prng *r, double least, double most)
{
    return least * exp(sim_uniform(r) * log(most / least));
}

static uint64_t draw_size(struct maker *m)
{
    const struct sim_kind *kind = m->kind;
    double n = kind->log_uniform ? log_between(&m->r, SIM_FILE_LEAST, (double)SIM_FILE_MOST)
                                 : MEDIAN_BYTES * exp(SIGMA * normal(&m->r));
    if (kind->file_bytes)
        return kind->file_bytes;
    if (n < SIM_FILE_LEAST)
        return SIM_FILE_LEAST;
    return n > (double)SIM_FILE_MOST ? SIM_FILE_MOST : (uint64_t)n;
}

static void add_entry(struct sim_trace *t, uint64_t n_bytes, bool is_large)
{
    if (t->n_entries % 65536 == 0) {
        t->n_bytes = realloc(t->n_bytes, (t->n_entries + 65536) * sizeof *t->n_bytes);
        t->is_large = realloc(t->is_large, (t->n_entries + 65536) * sizeof *t->is_large);
        NJ_CHECK(t->n_bytes && t->is_large);
    }
    uint32_t whole = (uint32_t)((n_bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES * SIM_PAGE_BYTES);
    t->is_large[t->n_entries] = is_large;
    t->n_bytes[t->n_entries++] = whole;
    t->footprint += whole;
}

static void add_file(struct sim_trace *t, uint64_t n_bytes)
{
    uint64_t left = n_bytes;

    t->n_files++;
    do { /* an empty file has an entry, too */
        uint64_t n = left < SIM_PIECE_BYTES ? left : SIM_PIECE_BYTES;
        add_entry(t, n, n_bytes > SIM_WHOLE_BYTES);
        left -= n;
    } while (left > 0);
}

static void make_files(struct maker *m)
{
    struct sim_trace *t = m->t;

    while (t->footprint < m->kind->footprint && t->n_files < FILES_MAX) {
        m->first[t->n_files] = t->n_entries;
        add_file(t, draw_size(m));
    }
    m->first[t->n_files] = t->n_entries;
}

static void swap_ranks(struct maker *m, uint32_t a, uint32_t b)
{
    uint32_t file = m->of_rank[a];

    m->of_rank[a] = m->of_rank[b];
    m->of_rank[b] = file;
}

/* Assigns Zipf weights to the ranks, and files to ranks at random. */
static void make_ranks(struct maker *m)
{
    double sum = 0;

    for (uint32_t i = 0; i < m->t->n_files; i++) {
        sum += pow(i + 1, -m->kind->zipf);
        m->sum[i] = sum;
        m->of_rank[i] = i;
    }
    for (uint32_t i = m->t->n_files; i-- > 1;)
        swap_ranks(m, i, nj_prng_below(&m->r, i + 1));
}

static void shift(struct maker *m)
{
    uint32_t n = m->t->n_files;

    for (uint32_t i = 0; i < n; i++)
        if (nj_prng_below(&m->r, 100) < m->kind->shift_percent)
            swap_ranks(m, i, nj_prng_below(&m->r, n));
}

static uint32_t draw_file(struct maker *m)
{
    uint32_t low = 0, high = m->t->n_files - 1;
    double at = sim_uniform(&m->r) * m->sum[high];

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (m->sum[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return m->of_rank[low];
}

static void draw_request(struct maker *m, struct reader *reader)
{
    uint32_t file = draw_file(m);

    reader->next = m->first[file];
    reader->end = m->first[file + 1];
    m->t->n_requests++;
    if (nj_prng_below(&m->r, 100) >= m->kind->range_percent)
        return;
    uint32_t n = (uint32_t)(log_between(&m->r, RANGE_LEAST, RANGE_MOST) / SIM_PIECE_BYTES) + 1;
    uint32_t from = nj_prng_below(&m->r, reader->end - reader->next);
    reader->next += from;
    if (n < reader->end - reader->next)
        reader->end = reader->next + n;
}

static void add_lookup(struct sim_trace *t, struct reader *reader, uint8_t number)
{
    struct sim_lookup *lookup = &t->lookups[t->n_lookups++];

    lookup->entry = reader->next++;
    lookup->reader = number;
    lookup->is_last = reader->next == reader->end;
    t->n_client_lookups += number != SIM_CRAWL;
}

static void add_client_lookup(struct maker *m)
{
    uint32_t number = nj_prng_below(&m->r, READERS);
    struct reader *reader = &m->readers[number];

    if (reader->next == reader->end)
        draw_request(m, reader);
    add_lookup(m->t, reader, (uint8_t)number);
}

/* Whether an event occurs at lookup `i`, if `n` events divide the trace into equal intervals. */
static bool is_event(uint32_t i, const struct sim_kind *kind, uint32_t n)
{
    return n > 0 && i > 0 && i % (kind->n_lookups / (n + 1)) == 0;
}

static void make_lookups(struct maker *m)
{
    const struct sim_kind *kind = m->kind;
    struct sim_trace *t = m->t;

    for (uint32_t i = 0; i < kind->n_lookups; i++) {
        if (is_event(i, kind, kind->n_shifts))
            shift(m);
        if (is_event(i, kind, kind->n_crawls) && m->crawl.next == m->crawl.end)
            m->crawl = (struct reader){0, t->n_entries};
        add_client_lookup(m);
        if (m->crawl.next < m->crawl.end)
            add_lookup(t, &m->crawl, SIM_CRAWL);
    }
}

void sim_trace_make(struct sim_trace *t, const struct sim_kind *kind, uint64_t seed)
{
    struct maker m = {.t = t, .kind = kind};

    memset(t, 0, sizeof *t);
    nj_prng_init(&m.r, seed);
    m.first = malloc((FILES_MAX + 1) * sizeof *m.first);
    NJ_CHECK(m.first);
    make_files(&m);
    m.of_rank = malloc(t->n_files * sizeof *m.of_rank);
    m.sum = malloc(t->n_files * sizeof *m.sum);
    uint64_t n_most = kind->n_lookups + (uint64_t)kind->n_crawls * t->n_entries;
    t->lookups = malloc(n_most * sizeof *t->lookups);
    NJ_CHECK(m.of_rank && m.sum && t->lookups && n_most < UINT32_MAX);
    make_ranks(&m);
    make_lookups(&m);
    free(m.first);
    free(m.of_rank);
    free(m.sum);
}

/* --- reading a trace -------------------------------------------------------------------------- */

/* The format: a line with the size of each file, numbered from 0; an empty line; a line for each
 * request, with the number of a file. A request is for the whole file, and requests do not overlap.
 */
static bool read_files(struct sim_trace *t, FILE *f, uint32_t *first)
{
    char line[32];

    while (fgets(line, sizeof line, f) && *line != '\n') {
        char *end;
        uint64_t n_bytes = strtoull(line, &end, 10);
        if (*end != '\n' || n_bytes > SIM_FILE_MOST || t->n_files == FILES_MAX)
            return false;
        first[t->n_files] = t->n_entries;
        add_file(t, n_bytes);
    }
    first[t->n_files] = t->n_entries;
    return t->n_files > 0;
}

static bool read_requests(struct sim_trace *t, FILE *f, const uint32_t *first)
{
    char line[32];
    uint64_t n_room = 0;

    while (fgets(line, sizeof line, f)) {
        char *end;
        uint64_t file = strtoull(line, &end, 10);
        if (*end != '\n' || file >= t->n_files)
            return false;
        struct reader reader = {first[file], first[file + 1]};
        t->n_requests++;
        while (reader.next < reader.end) {
            if (t->n_lookups == n_room) {
                n_room = 2 * n_room + 65536;
                t->lookups = realloc(t->lookups, n_room * sizeof *t->lookups);
                NJ_CHECK(t->lookups && n_room < UINT32_MAX);
            }
            add_lookup(t, &reader, 0);
        }
    }
    return t->n_lookups > 0;
}

bool sim_trace_read(struct sim_trace *t, FILE *f, char *why, size_t n_why)
{
    uint32_t *first = malloc((FILES_MAX + 1) * sizeof *first);
    const char *error = NULL;

    NJ_CHECK(first);
    memset(t, 0, sizeof *t);
    if (!read_files(t, f, first))
        error = "no file sizes, an invalid or too large size, or too many files";
    else if (!read_requests(t, f, first))
        error = "no requests, or an invalid number of a file";
    free(first);
    if (error)
        snprintf(why, n_why, "%s", error);
    return !error;
}

void sim_trace_free(struct sim_trace *t)
{
    free(t->n_bytes);
    free(t->is_large);
    free(t->lookups);
}
