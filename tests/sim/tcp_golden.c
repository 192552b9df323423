/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_golden.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "tcp_sim.h"

#define NS_PER_BYTE 200u /* 40 Mbit/s */
#define WORSE_BY    1.03 /* threshold of a failure */
#define CELLS_MAX   128u

/* Runs averaged per cell. Without randomness they differ only in their sequence numbers. With loss
 * their number makes the mean known to a few percent (column "+-"). With losses by place the
 * difference of two algorithms is known better than that. */
#define RUNS_EXACT 3u
#define RUNS_BULK  60u
#define RUNS_SHORT 600u

struct cell {
    uint32_t n_bytes, rtt_ms, loss_ppm, tail_drop;
    uint32_t buffer_pct; /* of the bandwidth-delay product */
    uint32_t n_runs;
    double mean_ms; /* mean time from the opening to the last byte */
    double error;   /* relative standard error of the mean */
    bool failed;
};

struct table {
    uint32_t n;
    struct cell cell[CELLS_MAX];
    _Atomic uint32_t next;
};

/* --- cells of the table -------------------------------------------------------------------- */

static void add(struct table *t, struct cell c)
{
    NJ_CHECK(t->n < CELLS_MAX);
    c.n_runs = c.loss_ppm == 0 ? RUNS_EXACT : c.n_bytes > 100000 ? RUNS_BULK : RUNS_SHORT;
    t->cell[t->n++] = c;
}

/* A grid of long transfers; then short ones that lose their last segments, where time-outs
 * dominate. */
static void fill(struct table *t)
{
    static const uint32_t rtts[] = {1, 20, 100, 300}, losses[] = {0, 1000, 10000, 30000};
    static const uint32_t buffers[] = {25, 100, 400}, tails[] = {1, 3}, sizes[] = {16384, 65536};

    for (unsigned r = 0; r < 4; r++)
        for (unsigned l = 0; l < 4; l++)
            for (unsigned b = 0; b < 3; b++)
                add(t, (struct cell){.n_bytes = 2u << 20,
                                     .rtt_ms = rtts[r],
                                     .loss_ppm = losses[l],
                                     .buffer_pct = buffers[b]});
    for (unsigned s = 0; s < 2; s++)
        for (unsigned r = 0; r < 4; r++) {
            struct cell c = {.n_bytes = sizes[s], .rtt_ms = rtts[r], .buffer_pct = 100};
            for (unsigned i = 0; i < 2; i++) {
                c.tail_drop = tails[i];
                add(t, c);
            }
            c.tail_drop = 0;
            for (unsigned i = 2; i < 4; i++) {
                c.loss_ppm = losses[i];
                add(t, c);
            }
        }
}

static void name(const struct cell *c, char *out, size_t n)
{
    snprintf(out, n, "%4u KiB, rtt %3u ms, loss %.1f %%, buffer %.2f BDP, tail %u",
             c->n_bytes / 1024, c->rtt_ms, c->loss_ppm / 10000.0, c->buffer_pct / 100.0,
             c->tail_drop);
}

/* --- one run ------------------------------------------------------------------------------- */

static uint32_t bytes_of(struct tsim *sim)
{
    return (uint32_t)sim->mix.bytes_budget;
}

/* A request of 100 bytes, and its response. */
static void plan(struct tsim_flow *f, struct tsim *sim, uint32_t index)
{
    f->n_rounds = 1;
    f->lockstep = true;
    f->port[0] = (uint16_t)(40000 + sim->seed % 20000 + index);
    f->port[1] = TSIM_LISTEN_PORT;
    for (unsigned h = 0; h < 2; h++) {
        struct tsim_side *s = &f->side[h];
        s->per_round = h ? bytes_of(sim) : 100;
        s->piece = s->sip = UINT16_MAX;
        s->abort_after = s->stall_after = NJ_NEVER;
        s->start_at = sim->now;
        s->polite = h;
    }
    f->side[0].state = TSIM_WAITING;
}

static struct tsim_mix mix_of(const struct cell *c, uint64_t seed)
{
    nj_ns rtt = c->rtt_ms * NJ_MS, queue = rtt * c->buffer_pct / 100;
    nj_ns least = 2 * SIM_FRAME_MAX * NS_PER_BYTE; /* a smaller buffer cannot queue */
    struct sim_faults f = {
        .loss = c->loss_ppm,
        .delay = rtt / 2,
        .ns_per_byte = NS_PER_BYTE,
        .queue_max = queue > least ? queue : least,
    };
    struct tsim_host_mix host = {.mtu = 1500, .step_gap = 5 * NJ_US};
    nj_ns start_at = NJ_SEC + seed * 12345 * NJ_US;

    struct sim_faults data = f;
    data.loss = 0; /* otherwise twice */
    return (struct tsim_mix){
        .net = {f, data},
        .host = {host, host},
        .loss_by_place = c->loss_ppm,
        .tail_drop = c->tail_drop,
        .n_flows = 1,
        .bytes_budget = c->n_bytes,
        .start_at = start_at,
        .calm_at = start_at + 3600 * NJ_SEC,
        .time_wait = 1 * NJ_MS,
    };
}

/* Milliseconds from the opening to the last byte of the response; negative: failed. */
static double run(struct tsim *sim, const struct tsim_env *env, const struct cell *c, uint64_t seed)
{
    struct tsim_mix mix = mix_of(c, seed);

    if (!nj_tsim_run_mix(sim, seed, env, &mix, plan))
        return -1;
    const struct tsim_side *s = &sim->flow[0].side[0];
    return (double)(s->done_at - s->opened_at) / (double)NJ_MS;
}

static void measure(struct tsim *sim, const struct tsim_env *env, struct cell *c)
{
    double sum = 0, squares = 0, n = c->n_runs;

    for (uint32_t i = 1; i <= c->n_runs; i++) {
        double ms = run(sim, env, c, i);
        if (ms < 0) {
            printf("run %u failed: %s\n", i, sim->record.why);
            c->failed = true;
            return;
        }
        sum += ms;
        squares += ms * ms;
    }
    c->mean_ms = sum / n;
    double variance = squares / n - c->mean_ms * c->mean_ms;
    c->error = variance > 0 ? sqrt(variance / n) / c->mean_ms : 0;
}

static void work(struct table *t)
{
    struct tsim *sim = calloc(1, sizeof *sim);
    struct tsim_env env = nj_tsim_env_new();
    uint32_t i;

    NJ_CHECK(sim);
    while ((i = atomic_fetch_add(&t->next, 1)) < t->n) {
        measure(sim, &env, &t->cell[i]);
        if (t->cell[i].failed) { /* its world cannot be used again */
            fflush(stdout);
            _exit(1);
        }
    }
    nj_tsim_env_free(&env);
    free(sim);
}

/* One process per core takes cells in turn. False: a process died. */
static bool measure_all(struct table *t, uint32_t jobs)
{
    bool ok = true;
    int status;

    fflush(stdout);
    for (uint32_t i = 0; i < jobs; i++) {
        pid_t pid = fork();
        NJ_CHECK(pid >= 0);
        if (pid == 0) {
            work(t);
            exit(0);
        }
    }
    while (wait(&status) > 0)
        ok &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return ok;
}

/* --- output -------------------------------------------------------------------------------- */

static void print_cell(const struct cell *c)
{
    char text[100];
    double line_ms = (double)c->n_bytes * NS_PER_BYTE / (double)NJ_MS;

    name(c, text, sizeof text);
    printf("%s: %.3f ms, goodput %.4f +- %.1f %%\n", text, c->mean_ms, line_ms / c->mean_ms,
           c->error * 100);
}

static void print(const struct table *t)
{
    puts("# Time from the opening to the last byte, and goodput as a fraction of the line's rate,");
    puts("# 40 Mbit/s. Made by: build/tests/sim/nj-tcpsim --golden >tests/sim/golden.txt");
    puts("# Compared by: nj-tcpsim --golden-check; a cell that is 3 % slower fails.");
    for (uint32_t i = 0; i < t->n; i++)
        print_cell(&t->cell[i]);
}

/* The time of this cell in the file; negative: none. */
static double golden_ms(FILE *f, const struct cell *c)
{
    char line[256], text[100];
    double ms = -1;

    name(c, text, sizeof text);
    rewind(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, text, strlen(text)) == 0 && line[strlen(text)] == ':')
            ms = strtod(line + strlen(text) + 1, NULL);
    return ms;
}

static bool compare(const struct table *t, FILE *f)
{
    uint32_t n_worse = 0, n_better = 0, n_missing = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        const struct cell *c = &t->cell[i];
        double was = golden_ms(f, c);
        n_missing += was <= 0;
        n_better += was > c->mean_ms * WORSE_BY;
        if (was > 0 && c->mean_ms <= was * WORSE_BY)
            continue;
        n_worse += was > 0;
        printf("was %.3f ms: ", was);
        print_cell(c);
    }
    printf("%u cells: %u worse by 3 %%, %u better, %u not in the table\n", t->n, n_worse, n_better,
           n_missing);
    if (n_worse + n_missing > 0)
        puts("If this is meant: build/tests/sim/nj-tcpsim --golden >tests/sim/golden.txt, and say\n"
             "in the commit why.");
    return n_worse + n_missing == 0;
}

int nj_tsim_golden(const char *golden_file, uint32_t jobs)
{
    struct table *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *f = golden_file ? fopen(golden_file, "r") : NULL;
    bool ok = true;

    NJ_CHECK(t != MAP_FAILED);
    if (golden_file && !f) {
        fprintf(stderr, "nj-tcpsim: %s: %s\n", golden_file, strerror(errno));
        return 2;
    }
    fill(t);
    if (!measure_all(t, jobs))
        return 1;
    if (f) {
        ok = compare(t, f);
        fclose(f);
    } else {
        print(t);
    }
    return ok ? 0 : 1;
}
