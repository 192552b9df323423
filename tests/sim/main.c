/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-sim: run seeds of the simulated world until one fails.
 *
 * Seeds that have failed before are listed in seeds.txt and run first.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "sim.h"
#include "support/mbuf_env.h"

/* Every so many seeds one is run a second time and must leave the same hash. */
#define REPLAY_EVERY   20u
/* A line of progress after so many: about a second. */
#define PROGRESS_EVERY 100u

struct options {
    uint64_t first, n;
    bool one, trace, check_replay, counters;
    const char *pcap;
};

struct totals {
    uint64_t passed, failed;
    struct sim_link_stats link;
    uint64_t counter[NJ_N_COUNTERS]; /* of both shards */
};

static int usage(void)
{
    fputs("usage: nj-sim [--seeds N] [--first S] [--check-replay] [--counters]\n"
          "       nj-sim --seed S [--trace] [--pcap FILE] [--counters]\n",
          stderr);
    return 2;
}

static bool number(const char *s, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(s, &end, 0);
    return errno == 0 && *s != '\0' && *end == '\0';
}

static bool parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {
        {"seeds", required_argument, NULL, 'n'}, {"first", required_argument, NULL, 'f'},
        {"seed", required_argument, NULL, 's'},  {"trace", no_argument, NULL, 't'},
        {"pcap", required_argument, NULL, 'p'},  {"check-replay", no_argument, NULL, 'c'},
        {"counters", no_argument, NULL, 'C'},    {NULL, 0, NULL, 0},
    };
    int c;

    *o = (struct options){.first = 1, .n = 50};
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'n' && number(optarg, &o->n))
            continue;
        if ((c == 'f' || c == 's') && number(optarg, &o->first)) {
            if (c == 's')
                o->one = true;
        } else if (c == 'p') {
            o->pcap = optarg;
        } else if (c == 't') {
            o->trace = true;
        } else if (c == 'c') {
            o->check_replay = true;
        } else if (c == 'C') {
            o->counters = true;
        } else {
            return false;
        }
    }
    return optind == argc && (o->one || (!o->trace && !o->pcap));
}

static void make_pools(struct sim_pools *p)
{
    p->server_rx = nj_test_pool(4096);
    p->client_rx = nj_test_pool(4096);
    p->client_tx = nj_test_pool(4096);
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        p->server_tx[i] = nj_test_pool(4096);
        p->server_tx_tight[i] = nj_test_pool(700);
    }
}

static void free_pools(const struct sim_pools *p)
{
    nj_test_pool_free(p->server_rx);
    nj_test_pool_free(p->client_rx);
    nj_test_pool_free(p->client_tx);
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        nj_test_pool_free(p->server_tx[i]);
        nj_test_pool_free(p->server_tx_tight[i]);
    }
}

static void say_how(uint64_t seed, const char *why)
{
    printf("seed %" PRIu64 " failed: %s\nreplay: nj-sim --seed %" PRIu64 " --trace\n", seed, why,
           seed);
    fflush(stdout);
}

/* The seed at work, for whoever has to tell it in a hurry. */
static uint64_t *seed_at_work(void)
{
    static uint64_t seed;
    return &seed;
}

/* An assertion or a sanitizer ends the process: the seed must still be told. */
static void on_abort(int sig)
{
    say_how(*seed_at_work(), "the process aborted");
    signal(sig, SIG_DFL);
    raise(sig);
}

static void add_up(struct totals *t, const struct sim *sim)
{
    const struct sim_link_stats *l = &sim->link.stats;

    t->link.sent += l->sent;
    t->link.lost += l->lost;
    t->link.duplicated += l->duplicated;
    t->link.reordered += l->reordered;
    t->link.corrupted += l->corrupted;
    t->link.queue_full += l->queue_full;
    t->link.no_mbuf += l->no_mbuf;
    for (unsigned i = 0; i < NJ_N_COUNTERS; i++)
        t->counter[i] += sim->served[i];
}

static bool run_one(struct sim *sim, uint64_t seed, const struct sim_pools *pools, struct totals *t,
                    bool twice)
{
    *seed_at_work() = seed;
    bool ok = nj_sim_run(sim, seed, pools);
    uint64_t hash = sim->log.hash;
    if (ok && twice && (ok = nj_sim_run(sim, seed, pools)) && sim->log.hash != hash)
        nj_sim_fail(sim, "not the same when run again");
    if (sim->failed) {
        t->failed++;
        say_how(seed, sim->why);
        return false;
    }
    t->passed++;
    add_up(t, sim);
    if (t->passed % PROGRESS_EVERY == 0) {
        printf("%" PRIu64 " passed, at seed %" PRIu64 "\n", t->passed, seed);
        fflush(stdout);
    }
    return true;
}

/* One seed per line; what follows it is why it is there. */
static bool run_regressions(struct sim *sim, const char *path, const struct sim_pools *pools,
                            struct totals *t)
{
    char line[256];
    uint64_t seed;
    FILE *f = fopen(path, "r");

    if (!f) {
        fprintf(stderr, "nj-sim: %s: %s\n", path, strerror(errno));
        return false;
    }
    bool ok = true;
    while (ok && fgets(line, sizeof line, f))
        if (sscanf(line, "%" SCNu64, &seed) == 1)
            ok = run_one(sim, seed, pools, t, false);
    fclose(f);
    return ok;
}

static void print_totals(const struct totals *t, bool counters)
{
    printf("%" PRIu64 " packets: %" PRIu64 " lost, %" PRIu64 " duplicated, %" PRIu64
           " reordered, %" PRIu64 " corrupted, %" PRIu64 " cut off by a queue, %" PRIu64
           " without mbuf\n",
           t->link.sent, t->link.lost, t->link.duplicated, t->link.reordered, t->link.corrupted,
           t->link.queue_full, t->link.no_mbuf);
    for (unsigned i = 0; counters && i < NJ_N_COUNTERS; i++)
        if (nj_counter_info[i].kind != NJ_KIND_GAUGE)
            printf("%12" PRIu64 " %s\n", t->counter[i], nj_counter_info[i].name);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", t->passed, t->failed);
}

int main(int argc, char **argv)
{
    struct options o;
    struct totals t = {0};
    struct sim_pools pools;

    if (!parse(argc, argv, &o))
        return usage();
    struct sim *sim = calloc(1, sizeof *sim);
    NJ_CHECK(sim);
    make_pools(&pools);
    signal(SIGABRT, on_abort);
    sim->log.trace = o.trace;
    if (o.pcap && !(sim->log.pcap = nj_sim_pcap_open(o.pcap))) {
        fprintf(stderr, "nj-sim: %s: %s\n", o.pcap, strerror(errno));
        return 2;
    }
    bool ok = o.one || run_regressions(sim, NJ_SIM_SEEDS_FILE, &pools, &t);
    for (uint64_t s = o.first; ok && s < o.first + (o.one ? 1 : o.n); s++)
        ok = run_one(sim, s, &pools, &t, o.check_replay || (!o.one && s % REPLAY_EVERY == 0));
    if (sim->log.pcap)
        fclose(sim->log.pcap);
    print_totals(&t, o.counters);
    if (!ok) /* what a failed seed leaves behind is no leak */
        _exit(fflush(stdout) ? 2 : 1);
    free_pools(&pools);
    free(sim);
    return 0;
}
