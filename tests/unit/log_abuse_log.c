/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of protection that acted: one per reason and second, for all shards together. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/abuse_log.h"
#include "shard/shard.h"
#include "support/addr.h"
#include "telem/counters.h"

#define SHARDS 3u

static struct nj_shard *shard[SHARDS];
static const struct nj_abuse *of[SHARDS];
static struct nj_abuse_log lines;
static struct nj_abuse_line line;
static nj_ns now;

static void init(void)
{
    now = 500 * NJ_SEC;
    memset(&lines, 0, sizeof lines);
    for (uint32_t i = 0; i < SHARDS; i++) {
        shard[i] = aligned_alloc(NJ_CACHE_LINE,
                                 (sizeof **shard + NJ_CACHE_LINE - 1) & ~(NJ_CACHE_LINE - 1ul));
        memset(shard[i], 0, sizeof **shard);
        shard[i]->conns.counters = &shard[i]->counters;
        of[i] = &shard[i]->conns.abuse;
    }
}

static void fini(void)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        free(shard[i]);
}

TestSuite(log_abuse_log, .init = init, .fini = fini);

static void act(uint32_t i, nj_counter reason, const char *client, uint32_t n)
{
    struct nj_addr a = addr(client);

    shard[i]->conns.now = now;
    while (n-- > 0)
        nj__abuse_record(&shard[i]->conns, reason, &a);
}

static const char *next(void)
{
    return nj_abuse_log_next(&lines, of, SHARDS, now, &line) ? line.text : "";
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Ten seconds of a flood on all shards, polled as often as the supervisor does: one line per
 * second, and the sums of the lines are correct. */
Test(log_abuse_log, one_line_per_second)
{
    uint64_t n_told = 0;
    uint32_t n_lines = 0;

    for (uint32_t tick = 0; tick < 500; tick++, now += 20 * NJ_MS) {
        for (uint32_t i = 0; i < SHARDS; i++)
            act(i, NJ_C_h2_abuse_resets, "198.18.0.9", 7);
        for (const char *l = next(); *l; l = next()) {
            unsigned n = 0;
            cr_assert_eq(sscanf(l, "abuse: client 198.18.0.9: h2_abuse_resets %u time", &n), 1,
                         "%s", l);
            n_told += n;
            n_lines++;
        }
    }
    now += NJ_SEC;
    unsigned n = 0;
    cr_expect_eq(sscanf(next(), "abuse: client 198.18.0.9: h2_abuse_resets %u time", &n), 1);
    cr_expect_eq(n_lines, 10, "%u lines in ten seconds", n_lines);
    cr_expect_eq(n_told + n, 500 * SHARDS * 7, "%u", (unsigned)n_told + n);
    cr_expect_eq(nj_counter_read(&shard[0]->counters, NJ_C_h2_abuse_resets), 500 * 7);
    cr_expect_str_eq(next(), "");
}

/* A refusal is no abuse: another word, and no warning. */
Test(log_abuse_log, refusals)
{
    act(0, NJ_C_conn_http1, "198.18.0.9", 1);
    cr_expect_str_eq(next(), "refused: client 198.18.0.9: conn_http1 1 time: HTTP/1.x clients "
                             "answered with 505, or HTTP/1.x where TLS agreed on h2");
    cr_expect_eq(line.level, NJ_LEVEL_INFO);
    act(0, NJ_C_tls_flood, "198.18.0.9", 1);
    cr_expect(has(next(), "abuse: client 198.18.0.9: tls_flood 1 time: "), "%s", line.text);
    cr_expect_eq(line.level, NJ_LEVEL_WARNING);
}

/* SYNs of denied networks for an hour, each from another address: a line per minute, with all of
 * them in its counts but those of the last minute. */
Test(log_abuse_log, forged_sources)
{
    struct nj_addr from = addr("198.18.0.1");
    uint32_t n_lines = 0, n = 0;
    uint64_t n_told = 0;

    for (uint32_t tick = 0; tick < 3600; tick++, now += NJ_SEC) {
        shard[0]->conns.now = now;
        for (uint32_t i = 0; i < 10; i++) {
            from.b[14] = (uint8_t)(++n >> 8);
            from.b[15] = (uint8_t)n;
            nj__abuse_attribute(&shard[0]->conns, NJ_C_drop_tcp_denied, &from);
        }
        for (const char *l = next(); *l; l = next(), n_lines++) {
            unsigned times = 0;
            cr_assert_eq(
                sscanf(l, "refused: client 198.18.%*u.%*u and others: drop_tcp_denied %u", &times),
                1, "%s", l);
            n_told += times;
        }
    }
    cr_expect_eq(n_lines, 60, "%u lines", n_lines);
    cr_expect_eq(n_told, (3600 - 59) * 10, "%u", (unsigned)n_told);
}

/* Each reason has its own limit of lines. */
Test(log_abuse_log, reasons_by_themselves)
{
    act(0, NJ_C_conn_rx_limit, "198.18.0.9", 1);
    cr_expect(has(next(), "client 198.18.0.9: conn_rx_limit 1 time: "), "%s", line.text);
    cr_expect_str_eq(next(), "");
    act(1, NJ_C_conn_shed, "2001:db8::7", 2);
    act(0, NJ_C_conn_rx_limit, "198.18.0.9", 1);
    cr_expect(has(next(), "client 2001:db8::7: conn_shed 2 times: "), "%s", line.text);
    cr_expect_str_eq(next(), "");
    now += NJ_SEC;
    cr_expect(has(next(), "client 198.18.0.9: conn_rx_limit 1 time: "), "%s", line.text);
    cr_expect_str_eq(next(), "");
}

/* The client with more than half of the acts is named, in any order of the acts. */
Test(log_abuse_log, the_worst_is_named)
{
    for (uint32_t i = 0; i < 10; i++) {
        act(0, NJ_C_conn_evicted, "198.18.0.9", 3);
        act(0, NJ_C_conn_evicted, i % 2 ? "198.18.0.10" : "198.18.0.11", 1);
    }
    act(2, NJ_C_conn_evicted, "198.18.0.12", 5);
    cr_expect(has(next(), "client 198.18.0.9 and others: conn_evicted 45 times"), "%s", line.text);
    now += 2 * NJ_SEC; /* former acts are forgotten */
    act(2, NJ_C_conn_evicted, "198.18.0.12", 50);
    cr_expect(has(next(), "client 198.18.0.12"), "%s", line.text);
}

/* A shard without new acts keeps the client of its last act, with its full count. */
Test(log_abuse_log, who_acted_long_ago_is_not_named)
{
    struct nj_abuse_view sum;
    struct nj_addr last = addr("198.18.0.14");

    act(0, NJ_C_conn_evicted, "198.18.0.9", 100);
    act(0, NJ_C_conn_evicted, "198.18.0.10", 1);
    cr_expect(has(next(), "client 198.18.0.9 and others: conn_evicted 101 times"), "%s", line.text);
    now += NJ_SEC;
    act(1, NJ_C_conn_evicted, "198.18.0.12", 3);
    cr_expect(has(next(), "client 198.18.0.12: conn_evicted 3 times"), "%s", line.text);
    now += 3600 * NJ_SEC;
    act(0, NJ_C_conn_evicted, "198.18.0.13", 2);
    cr_expect(has(next(), "client 198.18.0.13: conn_evicted 2 times"), "%s", line.text);
    act(1, NJ_C_conn_evicted, "198.18.0.14", 4);
    cr_assert(nj_abuse_sum(of, SHARDS, NJ_C_conn_evicted, &sum));
    cr_expect(sum.n == 110 && sum.others);
    cr_expect(nj_addr_eq(&sum.client, &last));
}

/* A record that could not be read, because its lcore was writing to it, is reported later. */
Test(log_abuse_log, a_torn_record_is_told_later)
{
    _Atomic uint32_t *version = &shard[1]->conns.abuse.slot[NJ_C_conn_evicted].version;

    act(0, NJ_C_conn_evicted, "198.18.0.9", 2);
    cr_expect(has(next(), "conn_evicted 2 times"), "%s", line.text);
    now += 2 * NJ_SEC;
    act(1, NJ_C_conn_evicted, "198.18.0.10", 1);
    atomic_fetch_add(version, 1);
    cr_expect_str_eq(next(), "");
    atomic_fetch_add(version, 1);
    cr_expect(has(next(), "client 198.18.0.10: conn_evicted 1 time:"), "%s", line.text);
    cr_expect_str_eq(next(), "");
}

#define ROUNDS 200000u

/* Two alternating clients, whose addresses have no byte in common. */
static void *flood(void *conns)
{
    struct nj_addr a, b;

    memset(&a, 0x55, sizeof a);
    memset(&b, 0xaa, sizeof b);
    for (uint32_t i = 0; i < ROUNDS; i++)
        nj__abuse_record(conns, NJ_C_send_timeout, i % 3 ? &a : &b);
    return NULL;
}

/* Another thread reads meanwhile: never a mixture of two addresses. Also for ThreadSanitizer. */
Test(log_abuse_log, threads)
{
    pthread_t writer;
    uint64_t n = 0;

    cr_assert_eq(pthread_create(&writer, NULL, flood, &shard[0]->conns), 0);
    while (n < ROUNDS) {
        struct nj_abuse_view view;
        if (!nj_abuse_get_count_and_client(of[0], NJ_C_send_timeout, &view))
            continue;
        cr_assert_geq(view.n, n);
        n = view.n;
        for (uint32_t i = 1; i < 16; i++)
            cr_assert_eq(view.client.b[i], view.client.b[0]);
    }
    pthread_join(writer, NULL);
}
