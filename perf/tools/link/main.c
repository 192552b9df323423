/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-link: a link with rate, delay, queue and losses between two interfaces of the kernel.
 *
 * The interfaces are ends of veth pairs whose other ends belong to the two hosts. Both hosts'
 * offloads must be off, so that the link carries packets of the MTU with checksums, as a wire does.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "link.h"

#define FIFO_PRIORITY 50

static const char USAGE[] =
    "usage: nj-link [options] IFACE_A IFACE_B, or nj-link --self-test\n"
    "\n"
    "  --ab SPEC, --ba SPEC  model of the link from A to B, from B to A [no effect]\n"
    "  --seed N              seed of all random numbers [1]\n"
    "  --spin TIME_US        time before a frame is due in which the link does not sleep [0]\n"
    "  --quiet TIME_US       after SIGTERM, end when no frame has arrived for this time [0]\n"
    "  --fifo                real-time priority\n"
    "  --self-test           measure the link's own errors, and end\n"
    "\n"
    "SPEC is a list of: rate=50M (bits of frame per second), delay=10ms, queue=64K (bytes),\n"
    "loss=0.01, burst=CHANCE:MEAN_LENGTH, reorder=CHANCE:TIME, dup=CHANCE, drop=3+7 (data\n"
    "packets by number, from 1), tail=N:BYTES (once, the last N data packets of a transfer of at\n"
    "least BYTES; they must be sent within one delay), of=all|data (packets for loss, burst,\n"
    "reorder and dup; data: packets with TCP data [data]). Prints `ready` when it carries frames,\n"
    "and a line of JSON at the end.\n";

static struct nj_link *running;

static void end(int number)
{
    atomic_store(&running->stop, true);
}

static int usage(const char *error, const char *argument)
{
    fprintf(stderr, "nj-link: %s%s\n\n%s", error, argument, USAGE);
    return 2;
}

/* Real-time priority, so that a due frame does not wait for other processes on the CPU. The
 * kernel's limit for real-time tasks keeps the machine usable. */
static bool set_priority(void)
{
    struct sched_param param = {.sched_priority = FIFO_PRIORITY};

    return sched_setscheduler(0, SCHED_FIFO, &param) == 0;
}

static int run(struct nj_link *l, char *const names[2], const struct nj_pipe_spec spec[2],
               uint64_t seed)
{
    for (int i = 0; i < 2; i++) {
        if (!nj_pipe_init(&l->pipe[i], &spec[i], seed + (uint64_t)i)) {
            fprintf(stderr, "nj-link: out of memory\n");
            return 1;
        }
        if (!nj_port_open(&l->port[i], names[i])) {
            fprintf(stderr, "nj-link: %s: %s\n", names[i], strerror(errno));
            return 1;
        }
    }
    running = l;
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    printf("ready\n");
    fflush(stdout);
    nj_link_run(l);
    nj_link_report(l, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    enum { AB, BA, SEED, SPIN, QUIET, FIFO, SELF_TEST, HELP };
    static const struct option OPTIONS[] = {
        {"ab", 1, NULL, AB},       {"ba", 1, NULL, BA},     {"seed", 1, NULL, SEED},
        {"spin", 1, NULL, SPIN},   {"fifo", 0, NULL, FIFO}, {"self-test", 0, NULL, SELF_TEST},
        {"quiet", 1, NULL, QUIET}, {"help", 0, NULL, HELP}, {NULL, 0, NULL, 0}};
    static struct nj_link link; /* 160 KB of histogram and 260 KB of heap */
    struct nj_pipe_spec spec[2] = {0};
    uint64_t seed = 1;
    const char *invalid;
    bool self_test = false;

    for (int c; (c = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        if (c == AB || c == BA) {
            if ((invalid = nj_pipe_parse(&spec[c], optarg)))
                return usage("invalid item: ", invalid);
        } else if (c == SEED) {
            seed = strtoull(optarg, NULL, 0);
        } else if (c == SPIN) {
            link.spin = strtoull(optarg, NULL, 0) * NJ_US;
        } else if (c == QUIET) {
            link.quiet = strtoull(optarg, NULL, 0) * NJ_US;
        } else if (c == FIFO) {
            if (!set_priority())
                fprintf(stderr, "nj-link: no real-time priority: %s\n", strerror(errno));
        } else if (c == SELF_TEST) {
            self_test = true;
        } else {
            return c == HELP ? !printf("%s", USAGE) : usage("", "");
        }
    }
    prctl(PR_SET_TIMERSLACK, 1ul);
    if (self_test)
        return nj_link_self_test();
    if (argc - optind != 2)
        return usage("expected two interfaces", "");
    mlockall(MCL_CURRENT);
    return run(&link, argv + optind, spec, seed);
}
