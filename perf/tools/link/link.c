/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <poll.h>

#include "threads/os_clock.h"

#define BATCH     64u           /* frames to read from a port before the other port is read */
#define STAMP_MAX (200 * NJ_MS) /* maximum age of a valid timestamp */
#define SLEEP_MAX (100 * NJ_MS) /* maximum delay of the reaction to a request to stop */

nj_ns nj_link_clock(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

/* Converts a timestamp of the kernel (CLOCK_REALTIME) to CLOCK_MONOTONIC. CLOCK_REALTIME may have
 * been set: for an invalid timestamp, returns the present time. */
static nj_ns arrival(nj_ns stamp)
{
    nj_ns real = nj_os_clock_gettime_ns(CLOCK_REALTIME), now = nj_link_clock();

    return stamp > real || real - stamp > STAMP_MAX ? now : now - (real - stamp);
}

static uint32_t read_port(struct nj_port *port, struct nj_pipe *pipe)
{
    struct nj_port_frame f;
    uint32_t n = 0;

    for (; n < BATCH && nj_port_peek(port, &f); n++) {
        if (f.n_bytes > f.n_held || f.n_bytes > NJ_PIPE_FRAME_MAX)
            pipe->stats.drop_overrun++;
        else
            nj_pipe_offer(pipe, f.bytes, f.n_bytes, arrival(f.stamp));
        nj_port_release(port);
    }
    return n;
}

static void send_due(struct nj_link *l, struct nj_pipe *pipe, struct nj_port *to)
{
    struct nj_pipe_frame *frame;
    nj_ns now = nj_link_clock();

    while ((frame = nj_pipe_take(pipe, now))) {
        uint64_t late = (now - frame->due) / NJ_US;
        l->late[late < NJ_LATE_BUCKETS ? late : NJ_LATE_BUCKETS - 1]++;
        l->n_late++;
        nj_port_send(to, frame->bytes, frame->n_bytes);
        nj_pipe_done(pipe, frame);
        now = nj_link_clock(); /* a send also runs the receiver's input and takes time */
    }
}

static nj_ns next_due(const struct nj_link *l)
{
    nj_ns a = nj_pipe_due(&l->pipe[0]), b = nj_pipe_due(&l->pipe[1]);

    return a < b ? a : b;
}

static void wait_for(struct nj_link *l, nj_ns due)
{
    struct pollfd fds[2] = {{.fd = l->port[0].fd, .events = POLLIN},
                            {.fd = l->port[1].fd, .events = POLLIN}};
    nj_ns now = nj_link_clock(), until = due == NJ_NEVER ? now + SLEEP_MAX : due;

    if (until <= now + l->spin)
        return;
    nj_ns ns = until - now - l->spin;
    ns = ns < SLEEP_MAX ? ns : SLEEP_MAX;
    struct timespec t = {.tv_nsec = (long)ns};
    ppoll(fds, 2, &t, NULL);
}

void nj_link_run(struct nj_link *l)
{
    nj_ns received_at = nj_link_clock(), stopped_at = NJ_NEVER;

    for (;;) {
        uint32_t n = read_port(&l->port[0], &l->pipe[0]) + read_port(&l->port[1], &l->pipe[1]);
        send_due(l, &l->pipe[0], &l->port[1]);
        send_due(l, &l->pipe[1], &l->port[0]);
        nj_ns now = nj_link_clock();
        if (n)
            received_at = now;
        if (stopped_at == NJ_NEVER && atomic_load_explicit(&l->stop, memory_order_relaxed))
            stopped_at = now;
        bool empty = next_due(l) == NJ_NEVER;
        if (stopped_at != NJ_NEVER &&
            ((empty && now - received_at >= l->quiet) || now - stopped_at >= NJ_LINK_STOP_MAX))
            return;
        if (!n)
            wait_for(l, stopped_at != NJ_NEVER && empty ? received_at + l->quiet : next_due(l));
    }
}

/* --- report --------------------------------------------------------------------------------- */

uint32_t nj_link_late_us(const struct nj_link *l, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)l->n_late), seen = 0;

    for (uint32_t us = 0; us < NJ_LATE_BUCKETS; us++)
        if ((seen += l->late[us]) >= wanted && seen > 0)
            return us;
    return 0;
}

static void report_pipe(struct nj_pipe *p, struct nj_port *from, FILE *to)
{
    const struct nj_pipe_stats *s = &p->stats;
    const struct {
        const char *name;
        uint64_t value;
    } row[] = {
        {"offered", s->offered},
        {"offered_bytes", s->offered_bytes},
        {"data", s->data},
        {"new_data", s->new_data},
        {"new_data_bytes", s->new_data_bytes},
        {"forwarded", s->forwarded},
        {"forwarded_bytes", s->forwarded_bytes},
        {"drop_queue", s->drop_queue},
        {"drop_loss", s->drop_loss},
        {"drop_picked", s->drop_picked},
        {"drop_tail", s->drop_tail},
        {"drop_overrun", s->drop_overrun + nj_port_overruns(from)},
        {"reordered", s->reordered},
        {"duplicated", s->duplicated},
        {"queue_bytes_max", s->queue_bytes_max},
        {"frames_max", s->frames_max},
        {"tail_first", s->tail_first},
        {"tail_last", s->tail_last},
        {"send_failed", from->send_failed},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        fprintf(to, "%s\"%s\": %llu", i ? ", " : "{", row[i].name,
                (unsigned long long)row[i].value);
    fprintf(to, "}");
}

void nj_link_report(struct nj_link *l, FILE *to)
{
    fprintf(to, "{\"ab\": ");
    report_pipe(&l->pipe[0], &l->port[0], to);
    fprintf(to, ", \"ba\": ");
    report_pipe(&l->pipe[1], &l->port[1], to);
    fprintf(to, ", \"late_us\": {\"p50\": %u, \"p90\": %u, \"p99\": %u, \"max\": %u}}\n",
            nj_link_late_us(l, 0.5), nj_link_late_us(l, 0.9), nj_link_late_us(l, 0.99),
            nj_link_late_us(l, 1));
    fflush(to);
}
