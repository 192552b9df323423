/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ./dev bench aead: GB/s of records of TLS 1.3, sealed and opened by each back end of lib/tls, of
 * their content, in a cache that has the data; memcpy beside it. Median of many rounds, in which
 * all take turns. Then the nanoseconds to expand a key, which a connection pays when its expanded
 * key is not there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "tls/record.h"

#define ROUNDS      101
#define ROUND_BYTES (1u << 20)
#define EXPANSIONS  200u
#define MBUF_BYTES  1440u /* without the headers of a packet */

enum way { COPY, SEAL, SEAL_CUT, OPEN };

static struct nj_tls_aead *aead[2];
static struct nj_tls_expanded *expanded[2];
static const char *const ciphers[] = {"AES-128-GCM", "AES-256-GCM", "ChaCha20"};
static const char *const engines[] = {"evp", "ipsec-mb"};
static uint8_t content[NJ_TLS_CONTENT_MAX], out[NJ_TLS_OPEN_ROOM];
static uint8_t record[NJ_TLS_RECORD_BYTES_MAX];

struct pieces {
    struct nj_tls_src src[2];
    struct nj_tls_dst dst[NJ_TLS_RECORD_BYTES_MAX / MBUF_BYTES + 1];
    uint32_t n_src, n_dst;
};

static struct column {
    const char *engine, *cipher, *what;
    enum way way;
    int which; /* of the back ends */
    struct nj_tls_keys keys;
    double ns[ROUNDS];
} columns[24];
static uint32_t n_columns;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The pieces of a record: one each; or as a response is, the head of a frame and its data, into
 * mbufs. */
static void cut(struct pieces *p, bool is_cut, uint32_t n)
{
    *p = (struct pieces){{{content, n}}, {{record, sizeof record}}, 1, 1};
    if (!is_cut)
        return;
    p->src[0].n_bytes = 9;
    p->src[p->n_src++] = (struct nj_tls_src){content + 9, n - 9};
    p->n_dst = 0;
    for (uint32_t at = 0; at < n + NJ_TLS_RECORD_OVERHEAD; at += MBUF_BYTES)
        p->dst[p->n_dst++] = (struct nj_tls_dst){record + at, MBUF_BYTES};
}

static void seal(struct column *c, const struct pieces *p)
{
    NJ_CHECK(nj_tls_record_seal(aead[c->which], &c->keys, expanded[c->which],
                                NJ_TLS_APPLICATION_DATA, p->src, p->n_src, p->dst, p->n_dst) > 0);
}

static void open_again(struct column *c, uint32_t n)
{
    const struct nj_tls_src src = {record, n + NJ_TLS_RECORD_OVERHEAD};
    struct nj_tls_opened opened;

    c->keys.record_number = 0;
    NJ_CHECK(nj_tls_record_open(aead[c->which], &c->keys, expanded[c->which], &src, 1, out,
                                sizeof out, &opened) == 0);
}

static double once(struct column *c, uint32_t n)
{
    uint32_t times = ROUND_BYTES / n;
    struct pieces p;

    cut(&p, c->way == SEAL_CUT, n);
    c->keys.record_number = 0;
    if (c->way == OPEN)
        seal(c, &p);
    double began = now_ns();
    for (uint32_t i = 0; i < times; i++) {
        if (c->way == COPY)
            memcpy(out, content, n);
        else if (c->way == OPEN)
            open_again(c, n);
        else
            seal(c, &p);
        __asm__ volatile("" : : : "memory"); /* each is wanted */
    }
    return (now_ns() - began) / times;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static double expand_ns(int which, uint32_t cipher)
{
    static double ns[ROUNDS];
    uint8_t key[NJ_TLS_KEY_BYTES_MAX] = {0};

    for (int r = 0; r < ROUNDS; r++) {
        double began = now_ns();
        for (uint32_t i = 0; i < EXPANSIONS; i++) {
            key[0]++;
            key[1] = (uint8_t)r;
            NJ_CHECK(nj_tls_expand(aead[which], NJ_TLS_AES_128_GCM_SHA256 + cipher, key,
                                   expanded[which]));
        }
        ns[r] = (now_ns() - began) / EXPANSIONS;
    }
    qsort(ns, ROUNDS, sizeof ns[0], by_value);
    return ns[ROUNDS / 2];
}

static void add(const char *what, enum way way, int which, uint32_t cipher)
{
    struct column *c = &columns[n_columns++];

    *c = (struct column){.engine = way == COPY ? "" : engines[which],
                         .cipher = way == COPY ? "" : ciphers[cipher],
                         .what = what,
                         .way = way,
                         .which = which,
                         .keys = {.cipher = (uint16_t)(NJ_TLS_AES_128_GCM_SHA256 + cipher),
                                  .key = {(uint8_t)(way + 1)}}};
}

static void start(void)
{
    aead[0] = nj_tls_aead_new(NJ_TLS_ENGINE_EVP);
    aead[1] = nj_tls_aead_new(NJ_TLS_ENGINE_IPSEC_MB);
    NJ_CHECK(aead[0]);
    if (!aead[1])
        printf("ipsec-mb: not on this CPU\n");
    for (int which = 0; which < 2 && aead[which]; which++) {
        size_t n = nj_tls_expanded_bytes(aead[which]);
        expanded[which] = aligned_alloc(NJ_TLS_EXPANDED_ALIGN, n);
        NJ_CHECK(expanded[which]);
        memset(expanded[which], 0, n);
        for (uint32_t cipher = 0; cipher < (which == 0 ? 3 : 2); cipher++) {
            add("seal", SEAL, which, cipher);
            add("seal, in pieces", SEAL_CUT, which, cipher);
            add("open", OPEN, which, cipher);
        }
    }
    add("memcpy", COPY, 0, 0);
}

int main(void)
{
    static const uint32_t sizes[] = {100, 1400, 4096, 16384};
    double gbs[NJ_ARRAY_LEN(columns)][NJ_ARRAY_LEN(sizes)];

    start();
    for (size_t s = 0; s < NJ_ARRAY_LEN(sizes); s++) {
        for (int r = 0; r < ROUNDS; r++)
            for (uint32_t i = 0; i < n_columns; i++)
                columns[i].ns[r] = once(&columns[i], sizes[s]);
        for (uint32_t i = 0; i < n_columns; i++) {
            qsort(columns[i].ns, ROUNDS, sizeof columns[i].ns[0], by_value);
            gbs[i][s] = sizes[s] / columns[i].ns[ROUNDS / 2];
        }
    }
    printf("%-10s%-13s%-17s", "GB/s", "", "");
    for (size_t s = 0; s < NJ_ARRAY_LEN(sizes); s++)
        printf("%8u B", sizes[s]);
    printf("\n");
    for (uint32_t i = 0; i < n_columns; i++) {
        printf("%-10s%-13s%-17s", columns[i].engine, columns[i].cipher, columns[i].what);
        for (size_t s = 0; s < NJ_ARRAY_LEN(sizes); s++)
            printf("%10.2f", gbs[i][s]);
        printf("\n");
    }
    for (int which = 0; which < 2 && aead[which]; which++)
        for (uint32_t cipher = 0; cipher < (which == 0 ? 0 : 2); cipher++)
            printf("%s: %.0f ns to expand a key of %s (%u bytes)\n", engines[which],
                   expand_ns(which, cipher), ciphers[cipher], nj_tls_expanded_bytes(aead[which]));
    return 0;
}
