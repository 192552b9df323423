/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures and traces of several lcores, whose threads answer or do not. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/relaxed_atomics.h"
#include "dpdk/shard_rings.h"
#include "mgmt/capture.h"
#include "mgmt/trace.h"
#include "mgmt/transfers.h"
#include "support/mbuf_env.h"

#define HEADERS 54u /* of the packet that is received */
#define N       3u  /* two at the first port, one at the second */

/* A thread that runs commands, and receives a packet if a capture is on. */
struct lcore {
    struct nj_command_ring commands;
    struct nj_shard_endpoint end;
    struct nj_conns *conns; /* what traces use */
    struct rte_mbuf *packet;
    pthread_t thread;
    _Atomic bool is_stopped, ends;
    _Atomic uint32_t n_to_receive;
};

static struct lcore lcores[N];
static struct nj_lcore state[N];
static struct nj_dpdk_port port[2];
static struct nj_tsc_clock tsc_clock;
static _Atomic bool is_stopping;
static struct nj_mgmt_view view;
static struct rte_mempool *mp;

static void *loop(void *lcore)
{
    struct lcore *l = lcore;

    while (!atomic_load(&l->ends)) {
        if (!atomic_load(&l->is_stopped))
            nj_command_ring_run(&l->commands, NULL, 0);
        if (!l->end.capture || atomic_load(&l->n_to_receive) == 0) {
            sched_yield();
            continue;
        }
        atomic_fetch_sub(&l->n_to_receive, 1);
        nj__capture_received(l->end.capture, &l->packet, 1);
    }
    return NULL;
}

static void start(void)
{
    static const uint8_t frame[60] = {[12] = 8, 0, 0x45, [23] = 6, [46] = 0x50};
    struct nj_mgmt_lcore to[N];

    mp = nj_test_pool(16);
    tsc_clock.ns_per_cycle_q32 = 1ull << 32; /* the EAL does not run: 1 GHz */
    for (uint32_t i = 0; i < N; i++) {
        lcores[i] = (struct lcore){.packet = nj_test_mbuf(mp, frame, sizeof frame)};
        state[i] = (struct nj_lcore){.end = &lcores[i].end, .state = NJ_LCORE_RUNS};
        to[i] = (struct nj_mgmt_lcore){&lcores[i].commands, NULL};
    }
    port[0] = (struct nj_dpdk_port){.id = 0, .name = "first"};
    port[1] = (struct nj_dpdk_port){.id = 4, .name = "second"};
    view = (struct nj_mgmt_view){.clock = &tsc_clock,
                                 .n_ports = 2,
                                 .n_shards = N,
                                 .port = {{&port[0], NULL, 0, 2}, {&port[1], NULL, 2, 1}},
                                 .lcore = state,
                                 .is_stopping = &is_stopping};
    view.transfers = nj_mgmt_transfers_new(to, N);
    view.capture = nj_mgmt_capture_new(&view);
    view.trace = nj_mgmt_trace_new(&view);
    cr_assert(view.transfers && view.capture && view.trace);
    for (uint32_t i = 0; i < N; i++)
        cr_assert_eq(pthread_create(&lcores[i].thread, NULL, loop, &lcores[i]), 0);
}

static void stop_lcore(uint32_t i)
{
    atomic_store(&lcores[i].ends, true);
    pthread_join(lcores[i].thread, NULL);
    atomic_store(&state[i].state, NJ_LCORE_LEFT);
}

static void finish(void)
{
    for (uint32_t i = 0; i < N; i++)
        if (!atomic_load(&lcores[i].ends))
            stop_lcore(i);
    nj_mgmt_capture_free(view.capture);
    nj_mgmt_trace_free(view.trace);
    nj_mgmt_transfers_free(view.transfers);
    for (uint32_t i = 0; i < N; i++)
        rte_pktmbuf_free(lcores[i].packet);
}

static unsigned begin(int of_port, uint64_t n_packets, struct nj__mgmt_stream *s)
{
    const struct nj__capture_options o = {.port = of_port, .seconds = 600, .n_packets = n_packets};
    const char *why = NULL;
    unsigned status = nj__capture_begin(view.capture, &o, s, &why);

    cr_expect_eq(status == 200, why == NULL);
    return status;
}

struct seen {
    uint32_t n_sections, n_interfaces, n_packets, n_statistics, n_of[2];
    uint64_t n_dropped;
};

static void count(struct seen *seen, const uint8_t *block, uint32_t type)
{
    uint32_t interface;

    memcpy(&interface, block + 8, sizeof interface);
    seen->n_sections += type == 0x0a0d0d0a;
    seen->n_interfaces += type == 1;
    seen->n_statistics += type == 5;
    if (type == 6) {
        cr_assert_lt(interface, 2);
        seen->n_packets++;
        seen->n_of[interface]++;
    }
    if (type == 5) /* the start and the end, ISB_IFRECV, then ISB_IFDROP */
        seen->n_dropped += block[20 + 12 + 12 + 12 + 4];
}

/* Reads to the end, in pieces, or until there were so many packets. */
static struct seen read_all(struct nj__mgmt_stream *s, uint32_t n_until, bool *has_end)
{
    static uint8_t text[1 << 20];
    struct seen seen = {0};
    uint32_t n = 0, type, n_bytes;
    ssize_t got = 0;

    while (seen.n_packets < n_until && got >= 0) {
        cr_assert_lt(n, sizeof text - 100);
        got = s->read(s->of, (char *)text + n, 100);
        n += got > 0 ? (uint32_t)got : 0;
        for (; n >= 8; n -= n_bytes) {
            memcpy(&type, text, 4);
            memcpy(&n_bytes, text + 4, 4);
            if (n < n_bytes)
                break;
            count(&seen, text, type);
            memmove(text, text + n_bytes, n - n_bytes);
        }
        if (got == 0)
            sched_yield();
    }
    *has_end = got < 0;
    cr_expect(!*has_end || n == 0, "whole blocks");
    return seen;
}

static void receive(uint32_t n)
{
    for (uint32_t i = 0; i < N; i++)
        atomic_store(&lcores[i].n_to_receive, n);
}

/* Waits until the memory of the one before is released. */
static unsigned begin_soon(int of_port, uint64_t n_packets, struct nj__mgmt_stream *s)
{
    const struct nj__capture_options o = {.port = of_port, .seconds = 600, .n_packets = n_packets};
    const char *why;
    unsigned status;

    while ((status = nj__capture_begin(view.capture, &o, s, &why)) == 409)
        sched_yield();
    return status;
}

Test(mgmt_capture, of_all_ports)
{
    struct nj__mgmt_stream s, other;
    bool has_end;

    start();
    receive(100);
    cr_assert_eq(begin(-1, 300, &s), 200);
    cr_expect_eq(begin(-1, 300, &other), 409);
    struct seen seen = read_all(&s, UINT32_MAX, &has_end);
    cr_expect(seen.n_sections == 1 && seen.n_interfaces == 2 && seen.n_statistics == 2);
    cr_expect(seen.n_packets == 300 && seen.n_of[0] == 200 && seen.n_of[1] == 100);
    cr_expect_eq(begin(-1, 300, &other), 409, "its client has not gone");
    s.end(s.of);
    cr_assert_eq(begin_soon(-1, 1, &s), 200);
    s.end(s.of);
    finish();
}

Test(mgmt_capture, of_one_port)
{
    struct nj__mgmt_stream s;
    bool has_end;

    start();
    cr_expect_eq(begin(3, 10, &s), 404);
    receive(50);
    cr_assert_eq(begin(4, 1000, &s), 200);
    struct seen seen = read_all(&s, 50, &has_end);
    cr_assert(seen.n_interfaces == 1 && seen.n_of[0] == 50 && !has_end);
    cr_expect(nj__capture_end(view.capture));
    seen = read_all(&s, UINT32_MAX, &has_end);
    cr_expect(has_end && seen.n_statistics == 1 && seen.n_packets == 0);
    s.end(s.of);
    cr_expect_not(nj__capture_end(view.capture), "there is none");
    finish();
}

Test(mgmt_capture, ends_when_the_server_stops)
{
    struct nj__mgmt_stream s;
    bool has_end;

    start();
    receive(5);
    cr_assert_eq(begin(-1, 1000, &s), 200);
    read_all(&s, 15, &has_end);
    atomic_store(&is_stopping, true);
    struct seen seen = read_all(&s, UINT32_MAX, &has_end);
    cr_expect(has_end && seen.n_statistics == 2);
    s.end(s.of);
    atomic_store(&is_stopping, false);
    finish();
}

/* The client goes; an lcore that has not ended keeps the memory until it has left. */
Test(mgmt_capture, an_lcore_that_does_not_answer)
{
    struct nj__mgmt_stream s;
    bool has_end;

    start();
    receive(5);
    cr_assert_eq(begin(-1, 1000, &s), 200);
    read_all(&s, 15, &has_end);
    atomic_store(&lcores[1].is_stopped, true);
    s.end(s.of);
    receive(5); /* of the stopped one: nobody reads them */
    for (uint32_t i = 0; i < 100; i++) {
        cr_assert_eq(begin(-1, 10, &s), 409);
        sched_yield();
    }
    stop_lcore(1);
    lcores[1].end.capture = NULL;
    cr_assert_eq(begin_soon(-1, 10, &s), 200);
    s.end(s.of);
    finish();
}

/* Its body ends all the same, after a while. */
Test(mgmt_capture, a_body_does_not_wait_for_ever)
{
    struct nj__mgmt_stream s;
    bool has_end;

    start();
    cr_assert_eq(begin(-1, 1000, &s), 200);
    atomic_store(&lcores[0].is_stopped, true);
    cr_expect(nj__capture_end(view.capture));
    cr_expect_eq(read_all(&s, UINT32_MAX, &has_end).n_statistics, 2);
    s.end(s.of);
    finish();
}

Test(mgmt_capture, drops_are_counted)
{
    struct nj__mgmt_stream s;
    bool has_end;
    const uint32_t n_record = 8 + (uint32_t)offsetof(struct nj_captured, data) + HEADERS;
    const uint32_t n_room = (8u << 20) / ((n_record + 7) & ~7u);

    start();
    atomic_store(&lcores[2].n_to_receive, n_room + 100);
    cr_assert_eq(begin(4, 10000000, &s), 200);
    while (atomic_load(&lcores[2].n_to_receive) > 0)
        sched_yield();
    cr_expect(nj__capture_end(view.capture));
    struct seen seen = read_all(&s, UINT32_MAX, &has_end);
    cr_expect_eq((seen.n_packets + seen.n_dropped) % 256, (n_room + 100) % 256);
    cr_expect(seen.n_dropped > 0 && seen.n_packets <= n_room + 1);
    s.end(s.of);
    finish();
}
