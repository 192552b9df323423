/* SPDX-License-Identifier: BSD-3-Clause */
#include "runner.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "telem/counters.h"

#define REGRESSIONS_MAX 1024u

/* Exit status of a worker that has reported a failed seed. */
#define EXIT_TOLD 3

/* CPU time after which a seed counts as endless. SIGVTALRM then ends the worker, and its seed is
 * reported. Results never depend on it. */
#define SEED_CPU_S_MAX 120

/* Shared by the workers. */
struct board {
    uint64_t n_regressions, regression[REGRESSIONS_MAX];
    _Atomic uint64_t next; /* of all seeds to run, regressions first */
    _Atomic uint64_t n_passed, n_failed;
    _Atomic bool stop;
    _Atomic uint64_t link[sizeof(struct sim_channel_stats) / sizeof(uint64_t)];
    _Atomic uint64_t counter[NJ_COUNTERS_MAX];
    _Atomic uint64_t n_sealed, n_again;
    _Atomic uint64_t at_work[SIM_JOBS_MAX]; /* current seed of each worker */
};

static bool number(const char *s, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(s, &end, 0);
    return errno == 0 && *s != '\0' && *end == '\0';
}

static bool take_option(int c, const char *value, struct sim_options *o)
{
    uint64_t n = 0;

    if (strchr("nfsj", c) && !number(value, &n))
        return false;
    switch (c) {
    case 'n':
        o->n = n;
        return true;
    case 's':
    case 'f':
        o->first = n;
        o->one |= c == 's';
        return true;
    case 'j':
        o->jobs = (uint32_t)n;
        return n > 0 && n <= SIM_JOBS_MAX;
    case 'p':
        o->pcap = value;
        return true;
    case 't':
        return o->trace = true;
    case 'c':
        return o->check_replay = true;
    case 'C':
        return o->counters = true;
    case 'k':
        return o->keep_going = true;
    case 'T':
        return o->tls = true;
    case '1':
        return o->http1 = true;
    case 'g':
        return o->golden = true;
    case 'G':
        o->golden_file = value;
        return o->golden = true;
    default:
        return false;
    }
}

bool nj_sim_options(int argc, char **argv, bool has_golden, struct sim_options *o)
{
    static const struct option names[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"first", required_argument, NULL, 'f'},
        {"seed", required_argument, NULL, 's'},
        {"trace", no_argument, NULL, 't'},
        {"pcap", required_argument, NULL, 'p'},
        {"check-replay", no_argument, NULL, 'c'},
        {"counters", no_argument, NULL, 'C'},
        {"jobs", required_argument, NULL, 'j'},
        {"keep-going", no_argument, NULL, 'k'},
        {"golden", no_argument, NULL, 'g'},
        {"golden-check", required_argument, NULL, 'G'},
        {"tls", no_argument, NULL, 'T'},
        {"http1", no_argument, NULL, '1'},
        {NULL, 0, NULL, 0},
    };
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    bool many = false;
    int c;

    *o = (struct sim_options){.first = 1, .n = 50};
    o->jobs = n_cores < 1 ? 1 : n_cores > SIM_JOBS_MAX ? SIM_JOBS_MAX : (uint32_t)n_cores;
    while ((c = getopt_long(argc, argv, "j:", names, NULL)) != -1) {
        if (!take_option(c, optarg, o) || ((c == 'g' || c == 'G') && !has_golden) ||
            ((c == 'T' || c == '1') && has_golden))
            return false;
        many |= c == 'n';
    }
    if (o->one && many) /* this many seeds from this one on */
        o->one = false;
    else if (o->one)
        o->n = 1;
    return optind == argc && (o->one || (!o->trace && !o->pcap));
}

/* Reads lines of "seed  reason", and comments. */
static bool read_regressions(const struct sim_program *p, struct board *b)
{
    char line[256];
    uint64_t seed;
    FILE *f = fopen(p->seeds_file, "r");

    if (!f) {
        fprintf(stderr, "%s: %s: %s\n", p->name, p->seeds_file, strerror(errno));
        return false;
    }
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%" SCNu64, &seed) == 1 && b->n_regressions < REGRESSIONS_MAX)
            b->regression[b->n_regressions++] = seed;
    fclose(f);
    return true;
}

static void tell(const struct sim_program *p, uint64_t seed, const char *why)
{
    printf("seed %" PRIu64 " failed: %s\nreplay: %s --seed %" PRIu64 " --trace\n", seed, why,
           p->name, seed);
    fflush(stdout);
}

static void add_up(struct board *b, const struct sim_outcome *out)
{
    uint64_t link[sizeof out->link / sizeof(uint64_t)];

    memcpy(link, &out->link, sizeof link);
    for (size_t i = 0; i < sizeof link / sizeof link[0]; i++)
        atomic_fetch_add(&b->link[i], link[i]);
    for (unsigned i = 0; i < NJ_COUNTERS_MAX; i++)
        if (out->counter[i])
            atomic_fetch_add(&b->counter[i], out->counter[i]);
    atomic_fetch_add(&b->n_sealed, out->n_sealed);
    atomic_fetch_add(&b->n_again, out->n_again);
}

static bool run_one(const struct sim_program *p, void *world, uint64_t seed, bool twice,
                    struct board *b)
{
    struct sim_outcome out = {.ok = false};

    p->run(world, seed, &out);
    if (out.ok && twice) {
        uint64_t hash = out.hash;
        p->run(world, seed, &out);
        if (out.ok && out.hash != hash) {
            out.ok = false;
            snprintf(out.why, sizeof out.why, "not the same when run again");
        }
    }
    if (!out.ok) {
        tell(p, seed, out.why);
        atomic_fetch_add(&b->n_failed, 1);
        return false;
    }
    add_up(b, &out);
    uint64_t n = atomic_fetch_add(&b->n_passed, 1) + 1;
    if (n % p->progress_every == 0) {
        printf("%" PRIu64 " passed, at seed %" PRIu64 "\n", n, seed);
        fflush(stdout);
    }
    return true;
}

static void wind_up_watchdog(void)
{
    const struct itimerval limit = {.it_value.tv_sec = SEED_CPU_S_MAX};
    NJ_CHECK(setitimer(ITIMER_VIRTUAL, &limit, NULL) == 0);
}

/* Runs seeds until none is left. False: one failed, and the world cannot be used again. */
static bool work(const struct sim_program *p, const struct sim_options *o, struct board *b,
                 uint32_t job)
{
    const struct sim_record silent = {0};
    void *world = p->start(&silent);

    while (!atomic_load(&b->stop)) {
        uint64_t i = atomic_fetch_add(&b->next, 1);
        bool listed = i < b->n_regressions;
        if (!listed && i - b->n_regressions >= o->n)
            break;
        uint64_t seed = listed ? b->regression[i] : o->first + (i - b->n_regressions);
        atomic_store(&b->at_work[job], seed);
        wind_up_watchdog();
        if (!run_one(p, world, seed, o->check_replay || seed % p->replay_every == 0, b))
            return false;
    }
    p->stop(world);
    return true;
}

static pid_t spawn(const struct sim_program *p, const struct sim_options *o, struct board *b,
                   uint32_t job)
{
    fflush(stdout);
    pid_t pid = fork();

    NJ_CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    bool ok = work(p, o, b, job);
    if (!ok) { /* a failed seed leaves memory behind, which is not a leak */
        fflush(stdout);
        _exit(EXIT_TOLD);
    }
    exit(0);
}

/* After the end of a worker: reports its seed if the worker did not. */
static void bury(const struct sim_program *p, struct board *b, uint32_t job, int status)
{
    char why[80];

    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_TOLD))
        return;
    if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "the process died of signal %d", WTERMSIG(status));
    else
        snprintf(why, sizeof why, "the process ended with status %d", WEXITSTATUS(status));
    tell(p, atomic_load(&b->at_work[job]), why);
    atomic_fetch_add(&b->n_failed, 1);
}

static void run_many(const struct sim_program *p, const struct sim_options *o, struct board *b)
{
    pid_t pid[SIM_JOBS_MAX];
    uint32_t n_alive = 0;
    int status;

    for (uint32_t i = 0; i < o->jobs; i++, n_alive++)
        pid[i] = spawn(p, o, b, i);
    while (n_alive > 0) {
        pid_t gone = wait(&status);
        uint32_t job = 0;
        NJ_CHECK(gone > 0);
        while (job < o->jobs && pid[job] != gone)
            job++;
        NJ_CHECK(job < o->jobs);
        n_alive--;
        bury(p, b, job, status);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (o->keep_going) {
            pid[job] = spawn(p, o, b, job);
            n_alive++;
        } else {
            atomic_store(&b->stop, true);
        }
    }
}

/* Runs in this process, for a debugger, with trace and pcap. */
static void run_single(const struct sim_program *p, const struct sim_options *o, struct board *b,
                       FILE *pcap)
{
    const struct sim_record record = {.trace = o->trace, .pcap = pcap};
    void *world = p->start(&record);
    bool ok = run_one(p, world, o->first, o->check_replay, b);

    if (pcap)
        fflush(pcap);
    if (ok)
        p->stop(world);
}

static void print_totals(const struct board *b, bool counters)
{
    struct sim_channel_stats s;
    uint64_t link[sizeof s / sizeof(uint64_t)];

    for (size_t i = 0; i < sizeof link / sizeof link[0]; i++)
        link[i] = b->link[i];
    memcpy(&s, link, sizeof s);
    printf("%" PRIu64 " packets: %" PRIu64 " lost, %" PRIu64 " duplicated, %" PRIu64
           " reordered, %" PRIu64 " corrupted, %" PRIu64 " truncated, %" PRIu64
           " cut off by a queue, %" PRIu64 " without mbuf\n",
           s.sent, s.lost, s.duplicated, s.reordered, s.corrupted, s.truncated, s.queue_full,
           s.no_mbuf);
    if (b->n_sealed > 0)
        printf("%" PRIu64 " records sealed, each with a key and number of its own; %" PRIu64
               " bytes sent again, all with the same values\n",
               (uint64_t)b->n_sealed, (uint64_t)b->n_again);
    for (unsigned i = 0; counters && i < NJ_COUNTERS_MAX; i++)
        if (nj_counter_info[i].name && nj_counter_info[i].kind != NJ_KIND_GAUGE)
            printf("%12" PRIu64 " %s\n", (uint64_t)b->counter[i], nj_counter_info[i].name);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", (uint64_t)b->n_passed,
           (uint64_t)b->n_failed);
}

int nj_sim_run_seeds(const struct sim_program *p, const struct sim_options *o)
{
    struct board *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *pcap = NULL;

    NJ_CHECK(b != MAP_FAILED);
    if (o->pcap && !(pcap = nj_sim_pcap_open(o->pcap))) {
        fprintf(stderr, "%s: %s: %s\n", p->name, o->pcap, strerror(errno));
        return 2;
    }
    if (o->one)
        run_single(p, o, b, pcap);
    else if (read_regressions(p, b))
        run_many(p, o, b);
    else
        return 2;
    if (pcap)
        fclose(pcap);
    print_totals(b, o->counters);
    bool ok = b->n_failed == 0 && b->n_passed > 0;
    fflush(stdout);
    if (!ok) /* leaks of a failed run are not reported */
        _exit(1);
    return 0;
}
