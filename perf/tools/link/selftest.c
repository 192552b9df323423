/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the link's own errors. The probe and the link run in a network namespace with two veth
 * pairs. The probe uses the outer ends, the link the inner ends. The kernel timestamps each
 * arrival.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "link.h"
#include "threads/os_clock.h"

#define N_PROBES    2000u
#define PROBE_BYTES 1514u
#define PROBE_TYPE  0x88b5 /* Local Experimental EtherType 1 (IEEE 802) */
#define NUMBER_AT   16u
#define ARRIVAL_MAX (2 * NJ_SEC)

static const char MAKE[] =
    "set -e; for x in a b; do"
    " ip link add name $x type veth peer name ${x}x;"
    " for i in $x ${x}x; do"
    " sysctl -qw net.ipv6.conf.$i.disable_ipv6=1; ip link set dev $i up; done; done";

struct probe {
    struct nj_port from, to;
    nj_ns sent[N_PROBES], arrived[N_PROBES]; /* CLOCK_REALTIME, as the timestamps */
    uint32_t n_arrived;
};

static void send_probe(struct probe *p, uint32_t number)
{
    uint8_t frame[PROBE_BYTES] = {[0] = 2, [6] = 2, [11] = 1};

    frame[12] = PROBE_TYPE >> 8;
    frame[13] = PROBE_TYPE & 0xff;
    memcpy(frame + NUMBER_AT, &number, sizeof number);
    p->sent[number] = nj_os_clock_gettime_ns(CLOCK_REALTIME);
    nj_port_send(&p->from, frame, sizeof frame);
}

static void collect(struct probe *p)
{
    struct nj_port_frame f;
    uint32_t number;

    for (; nj_port_peek(&p->to, &f); nj_port_release(&p->to)) {
        if (f.n_held < PROBE_BYTES || f.bytes[12] != PROBE_TYPE >> 8)
            continue;
        memcpy(&number, f.bytes + NUMBER_AT, sizeof number);
        if (number < N_PROBES && !p->arrived[number]) {
            p->arrived[number] = f.stamp;
            p->n_arrived++;
        }
    }
}

static void pause_ns(nj_ns ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / NJ_SEC), .tv_nsec = (long)(ns % NJ_SEC)};

    nanosleep(&t, NULL);
}

static void *link_thread(void *link)
{
    nj_link_run(link);
    return NULL;
}

/* Sends `n` probes at intervals of `gap` through a link with this spec. Returns the number of
 * probes that arrived. */
static uint32_t round_of(struct probe *p, struct nj_link *l, const char *spec_text, uint32_t n,
                         nj_ns gap)
{
    struct nj_pipe_spec spec;
    pthread_t thread;

    memset(p->arrived, 0, sizeof p->arrived);
    p->n_arrived = 0;
    memset(l->late, 0, sizeof l->late);
    l->n_late = 0;
    l->stop = false;
    if (nj_pipe_parse(&spec, spec_text) || !nj_pipe_init(&l->pipe[0], &spec, 1) ||
        !nj_pipe_init(&l->pipe[1], &(struct nj_pipe_spec){0}, 2) ||
        pthread_create(&thread, NULL, link_thread, l))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        send_probe(p, i);
        collect(p);
        if (gap)
            pause_ns(gap);
    }
    for (nj_ns began = nj_link_clock();
         p->n_arrived < n && nj_link_clock() - began < ARRIVAL_MAX;) {
        pause_ns(NJ_MS);
        collect(p);
    }
    l->stop = true;
    pthread_join(thread, NULL);
    nj_pipe_fini(&l->pipe[0]);
    nj_pipe_fini(&l->pipe[1]);
    return p->n_arrived;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Prints quantiles of the error of the delay, in microseconds. */
static bool delay_error(struct probe *p, struct nj_link *l, const char *spec, nj_ns delay,
                        const char *end)
{
    static double error_us[N_PROBES];
    uint32_t n = round_of(p, l, spec, N_PROBES, 500 * NJ_US);

    if (n < N_PROBES) {
        fprintf(stderr, "nj-link: only %u of %u probes arrived\n", n, N_PROBES);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        error_us[i] = ((double)(p->arrived[i] - p->sent[i]) - (double)delay) / 1e3;
    qsort(error_us, n, sizeof *error_us, by_size);
    printf("\"%s\": {\"p1\": %.1f, \"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"max\": %.1f}%s",
           spec, error_us[n / 100], error_us[n / 2], error_us[n * 9 / 10], error_us[n * 99 / 100],
           error_us[n - 1], end);
    return true;
}

/* Prints the error of the rate, in percent. Sends a train of frames, and computes the rate from the
 * arrivals of the first and the last one. */
static bool rate_error(struct probe *p, struct nj_link *l, const char *spec, double bps,
                       const char *end)
{
    uint32_t n = 500;

    if (round_of(p, l, spec, n, 0) < n)
        return false;
    double seconds = (double)(p->arrived[n - 1] - p->arrived[0]) / 1e9;
    double got = (n - 1) * PROBE_BYTES * 8.0 / seconds;
    printf("\"%s\": %.4f%s", spec, (got / bps - 1) * 100, end);
    return true;
}

int nj_link_self_test(void)
{
    static struct nj_link link;
    static struct probe probe;

    if (unshare(CLONE_NEWNET) || system(MAKE) != 0 || !nj_port_open(&link.port[0], "ax") ||
        !nj_port_open(&link.port[1], "bx") || !nj_port_open(&probe.from, "a") ||
        !nj_port_open(&probe.to, "b")) {
        fprintf(stderr, "nj-link: cannot create the test links: %s\n", strerror(errno));
        return 1;
    }
    printf("{\"delay_error_us\": {");
    bool ok =
        delay_error(&probe, &link, "delay=500us", 500 * NJ_US, ", ") &&
        delay_error(&probe, &link, "delay=10ms", 10 * NJ_MS, ", ") &&
        delay_error(&probe, &link, "delay=50ms", 50 * NJ_MS, "}, \"rate_error_percent\": {") &&
        rate_error(&probe, &link, "rate=10M,queue=1M", 10e6, ", ") &&
        rate_error(&probe, &link, "rate=100M,queue=1M", 100e6, "}}\n");
    return ok ? 0 : 1;
}
