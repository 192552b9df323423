/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-stalls: the stalls of two CPUs.
 *
 * A thread on each CPU reads the clock in a loop. A gap between two reads is a stall: another
 * process, an interrupt or the host of a virtual machine had the CPU. A request that arrives in a
 * gap waits for the rest of it, whatever the server does. Prints a line for each CPU: the p99.9 of
 * the waits of requests at random times, and the longest gap, in nanoseconds, and the share of the
 * time in gaps.
 */
#include <stdio.h>
#include <string.h>

#include "cpu.h"

#define GAPS_MAX   (1u << 20)
#define GAP_NS_MIN 1000u /* a clock read takes about 30 */
#define SHARE      0.001 /* of requests that wait longer than the p99.9 */

struct watch {
    pthread_t thread;
    int cpu, error;
    uint64_t ns; /* duration: the wanted one, then the measured one */
    uint32_t n_gaps;
    uint64_t *gap;
};

static void *watch_cpu(void *arg)
{
    struct watch *w = arg;

    w->error = cpu_take(w->cpu);
    if (w->error)
        return NULL;
    uint64_t began = cpu_ns(), last = began, now = began;
    while (now - began < w->ns) {
        now = cpu_ns();
        if (now - last > GAP_NS_MIN && w->n_gaps < GAPS_MAX)
            w->gap[w->n_gaps++] = now - last;
        last = now;
    }
    w->ns = now - began;
    return NULL;
}

/* Share of the requests at random times that wait longer than `wait_ns`. */
static double share_above(const struct watch *w, uint64_t wait_ns)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->n_gaps; i++)
        sum += w->gap[i] > wait_ns ? w->gap[i] - wait_ns : 0;
    return (double)sum / (double)w->ns;
}

static void report(const struct watch *w)
{
    uint64_t longest = 0, low = 0;

    for (uint32_t i = 0; i < w->n_gaps; i++)
        longest = w->gap[i] > longest ? w->gap[i] : longest;
    for (uint64_t high = longest; low < high;) {
        uint64_t middle = (low + high) / 2;
        if (share_above(w, middle) > SHARE)
            low = middle + 1;
        else
            high = middle;
    }
    printf("%lu %lu %.6f\n", (unsigned long)low, (unsigned long)longest, share_above(w, 0));
}

int main(int argc, char **argv)
{
    struct watch w[2] = {0};
    double seconds = argc == 4 ? atof(argv[3]) : 0;
    int cpu[2];

    if (!(seconds > 0 && seconds <= 600) || !cpu_pair(argv + 1, cpu)) {
        fprintf(stderr, "usage: nj-stalls CPU CPU SECONDS, two different numbers and up to 600\n");
        return 2;
    }
    for (int i = 0; i < 2; i++) {
        w[i].cpu = cpu[i];
        w[i].ns = (uint64_t)(seconds * 1e9);
        w[i].gap = calloc(GAPS_MAX, sizeof *w[i].gap);
        if (!w[i].gap || pthread_create(&w[i].thread, NULL, watch_cpu, &w[i]) != 0) {
            fprintf(stderr, "nj-stalls: out of memory, or no thread\n");
            return 1;
        }
    }
    for (int i = 0; i < 2; i++)
        pthread_join(w[i].thread, NULL);
    for (int i = 0; i < 2; i++) {
        if (w[i].error) {
            fprintf(stderr, "nj-stalls: CPU %s: %s\n", argv[i + 1], strerror(w[i].error));
            return 1;
        }
        report(&w[i]);
        free(w[i].gap);
    }
    return 0;
}
