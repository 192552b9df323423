/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The result does not depend on how the bytes of a peer are divided into inputs: each message of a
 * corpus at each position, and random messages, valid ones and mutated ones, at random positions.
 * And no failing allocation or sink leaves anything behind.
 */
#include "h1_rig.h"

#define H "Host: h.example\r\n"

static const char *const corpus[] = {
    "GET /1 HTTP/1.1\r\n" H "\r\n",
    "GET /1 HTTP/1.1\r\n" H "\r\n\r\nGET /2 HTTP/1.1\r\n" H "X-Y: z\r\n\r\n",
    "\r\nGET /600?p HTTP/1.1\r\n" H "\r\nHEAD /3?p HTTP/1.1\r\n" H "\r\nGET /3?4 HTTP/1.1\r\n" H
    "\r\n",
    "GET /1 HTTP/1.0\r\n\r\nGET /2 HTTP/1.0\r\n\r\n",
    "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /2?un HTTP/1.0\r\n\r\n",
    "GET http://a:80?b HTTP/1.1\r\n" H "Connection: close\r\n\r\nx",
    "POST /1?a HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nabcdeGET /2?t HTTP/1.1\r\n" H "\r\n",
    "POST /1 HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nabcdeGET /2?un HTTP/1.1\r\n" H "\r\n",
    "POST /1?acxun HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nabcde",
    "POST /1?ac HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5;a=\"b\\\"\" ; c\r\nabcde\r\n"
    "10\r\n0123456789abcdef\r\n0\r\nA: b\r\nC: d\r\n\r\nGET /2?unt HTTP/1.1\r\n" H "\r\n",
    "POST /1?a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /1 HTTP/1.1\r\n\r\n",
    "POST /1?a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\n",
    "POST /1?a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5;;\r\nabcde\n",
    "POST /1 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
    "POST /1?a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC : d\r\n\r\n",
    "GET /1?r HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n",
    "GET /1?R HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n",
    "POST /1?ar HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nabGET /2 HTTP/1.1\r\n" H "\r\n",
    "GET /9?f HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n",
    "GET /9?s HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n",
    "GET /9?uo HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n",
    "GET /1 HTTP/1.1\r\n" H "A: b\rc\r\n\r\n",
    "GET /1 HTTP/1.1\n" H "\r\n",
    "GET /1 HTTP/1.1\r\nA: b\r\nB: \x01\r\nC: d\n\r\n",
    "HEAD /1 HTTP/1.1\r\n" H "X Y: z\r\n\r\n",
    "\r\n\r\nGET /1 HTTP/1.1\r\n" H "\r\n",
    "\n\r\n",
    "GET /1 HTTP/2.0\r\n\r\n",
    "GET /1\r\n\r\n",
    "GET /1 HTTP/1.1\r\nHost: a b\r\nContent-Length: 1\r\n\r\nx",
    "OPTIONS * HTTP/1.1\r\n" H "TE: trailers\r\nUpgrade: h2c\r\n\r\nCONNECT a:1 HTTP/1.1\r\n" H
    "\r\nx",
    "PUT /1?a HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /1?d HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n",
    "GET /1?l HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n",
};

/* ---- what the peer and the owner have seen ---- */

struct result {
    char *text;
    size_t n;
    /* A response was given before the end of its request: how much of the request is read before
     * the response is complete depends on when the bytes arrive. */
    bool is_timed;
};

static void add(struct result *to, const void *p, size_t n)
{
    to->text = realloc(to->text, to->n + n + 1);
    memcpy(to->text + to->n, p, n);
    to->n += n;
    to->text[to->n] = '\0';
}

static struct result result_of(const struct rig *r)
{
    struct result to = {0};
    char line[200];

    for (unsigned i = 0; i < r->n_req; i++) {
        const struct rig_request *q = r->req[i];
        to.is_timed |= !q->ends && !rig_flag(q, 'a') && !rig_flag(q, 'l');
        add(&to, q->text, strlen(q->text));
        add(&to, "\n", 1);
        add(&to, q->content, q->n_content);
        add(&to, line,
            (size_t)snprintf(line, sizeof line, "\nended %d closed %d complete %d\n", q->ended,
                             q->closed, q->complete));
    }
    add(&to, r->out, r->n_out);
    add(&to, line,
        (size_t)snprintf(line, sizeof line, "\nrefused %u %u %s %s finished %d reset %d\n",
                         r->n_refused, r->refused_status, r->refused_method,
                         r->n_refused ? nj_counter_info[r->refused_why].name : "",
                         nj_h1_is_finished(r->h), nj_h1_must_reset(r->h)));
    return to;
}

/* How an owner gives the bytes. */
enum mode { WHOLE, AT, BYTES, RANDOM, KEEP, N_MODES };

/* Bytes that are not used are given again with the next ones, or kept. */
static struct result run(const char *text, size_t n, enum mode mode, size_t at, uint64_t seed)
{
    struct rig *r = rig_new();
    size_t given = 0, left = 0;

    nj_prng_init(&r->prng, seed);
    while (given < n) {
        size_t k = mode == BYTES ? 1
                   : mode == AT  ? (given < at ? at - given : n - given)
                   : mode == RANDOM || mode == KEEP
                       ? 1 + nj_prng_below(&r->prng, 1 + nj_prng_below(&r->prng, 40))
                       : n - given;
        k = k < n - given ? k : n - given;
        if (mode == KEEP && !nj_h1_may_read(r->h)) {
            nj_h1_keep(r->h, (const uint8_t *)text + given, (uint32_t)k);
            given += k;
            continue;
        }
        left = rig_input(r, text + given - left, left + k);
        given += k;
        if (mode == KEEP && left > 0) {
            nj_h1_keep(r->h, (const uint8_t *)text + given - left, (uint32_t)left);
            left = 0;
        }
    }
    struct result to = result_of(r);
    rig_free(r);
    return to;
}

static bool check(const char *text, size_t n, const struct result *want, enum mode mode, size_t at,
                  uint64_t seed)
{
    struct result got = run(text, n, mode, at, seed);
    bool ok = (seed > 0 && want->is_timed) ||
              (got.n == want->n && memcmp(got.text, want->text, got.n) == 0);

    cr_expect(ok, "mode %d at %zu seed %llu: %.*s\ngot\n%s\nwant\n%s", mode, at,
              (unsigned long long)seed, (int)n, text, got.text, want->text);
    free(got.text);
    return ok;
}

/* Sentence 202. */
Test(h1_splits, each_position)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(corpus); i++) {
        size_t n = strlen(corpus[i]);
        struct result want = run(corpus[i], n, WHOLE, 0, 0);
        bool ok = check(corpus[i], n, &want, BYTES, 0, 0);
        for (size_t at = 1; ok && at < n; at++)
            ok = check(corpus[i], n, &want, AT, at, 0);
        for (uint64_t seed = 1; ok && seed < 20; seed++)
            ok = check(corpus[i], n, &want, RANDOM, 0, seed) &&
                 check(corpus[i], n, &want, KEEP, 0, seed);
        free(want.text);
    }
}

/* Each prefix of a message: the connection ends there. */
Test(h1_splits, each_prefix)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(corpus); i++) {
        for (size_t n = 0; n < strlen(corpus[i]); n++) {
            struct result whole = run(corpus[i], n, WHOLE, 0, 0);
            bool ok = check(corpus[i], n, &whole, BYTES, 0, 0);
            free(whole.text);
            if (!ok)
                return;
        }
    }
}

/* ---- random messages ---- */

static const char *pick(struct nj_prng *g, const char *const *of, uint32_t n)
{
    return of[nj_prng_below(g, n)];
}
#define PICK(g, ...)                                                                               \
    pick(g, (const char *const[]){__VA_ARGS__}, NJ_ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

static size_t put_content(struct nj_prng *g, char *to, bool chunked)
{
    size_t n = 0;
    uint32_t size = nj_prng_below(g, 60);

    if (!chunked) {
        n += (size_t)sprintf(to, "Content-Length: %u\r\n\r\n", size);
        memset(to + n, 'x', size);
        return n + size;
    }
    n += (size_t)sprintf(to, "Transfer-Encoding: chunked\r\n\r\n");
    for (uint32_t i = nj_prng_below(g, 4); i > 0; i--) {
        size = 1 + nj_prng_below(g, 30);
        n += (size_t)sprintf(to + n, PICK(g, "%x%s\r\n", "%X%s\r\n", "0%x%s\r\n"), size,
                             PICK(g, "", "", ";a", " ; a = b", ";a=\"b c\""));
        memset(to + n, 'y', size);
        n += size;
        n += (size_t)sprintf(to + n, "\r\n");
    }
    return n +
           (size_t)sprintf(to + n, "0\r\n%s\r\n", PICK(g, "", "", "A: b\r\n", "A: b\r\nC: d\r\n"));
}

static size_t put_request(struct nj_prng *g, char *to)
{
    const char *method = PICK(g, "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "X");
    bool has_content = *method == 'P';
    size_t n = (size_t)sprintf(
        to, "%s%s %s%u?%s%s%s HTTP/1.%s\r\nHost: %s\r\n", PICK(g, "", "", "\r\n"), method,
        PICK(g, "/", "/", "http://a.example/"), nj_prng_below(g, 600),
        PICK(g, "", "p", "n", "un", "u", "une", "unt", "4", "2", "s", "o", "f"),
        has_content ? PICK(g, "", "a", "a", "a", "a", "ac", "xa") : "",
        PICK(g, "", "", "", "", "", "", "r", "R", "l"), PICK(g, "1", "1", "1", "1", "0", "5"),
        PICK(g, "h", "h.example:80", "[::1]:80"));

    for (uint32_t i = nj_prng_below(g, 5); i > 0; i--)
        n += (size_t)sprintf(to + n, "%s: %s\r\n",
                             PICK(g, "Accept", "X-Y", "user-AGENT", "TE", "Range"),
                             PICK(g, "", "b", "\t a long value with blanks \t", "trailers"));
    n += (size_t)sprintf(to + n, "%s",
                         PICK(g, "", "", "", "Connection: keep-alive\r\n", "Connection: close\r\n",
                              "Expect: 100-continue\r\n"));
    if (has_content)
        return n + put_content(g, to + n, nj_prng_below(g, 2));
    return n + (size_t)sprintf(to + n, "\r\n");
}

/* Change, insert or remove some octets. */
static size_t mutate(struct nj_prng *g, char *text, size_t n)
{
    for (uint32_t i = nj_prng_below(g, 4); i > 0 && n > 1; i--) {
        size_t at = nj_prng_below(g, (uint32_t)n);
        switch (nj_prng_below(g, 4)) {
        case 0:
            text[at] = (char)nj_prng_next(g);
            break;
        case 1:
            text[at] = *PICK(g, "\r", "\n", " ", ":", ",", ";", "0", "\t", "\"", "#", "@");
            break;
        case 2:
            memmove(text + at, text + at + 1, --n - at);
            break;
        default:
            memmove(text + at + 1, text + at, n++ - at);
            break;
        }
    }
    return n;
}

/* Sentence 202. */
Test(h1_splits, random)
{
    static char text[20000];
    unsigned n_requests = 0, n_refused = 0, n_compared = 0;

    for (uint64_t seed = 1; seed <= 6000; seed++) {
        struct nj_prng g;
        size_t n = 0;
        nj_prng_init(&g, seed);
        for (uint32_t i = 1 + nj_prng_below(&g, 5); i > 0; i--)
            n += put_request(&g, text + n);
        if (seed % 3 != 0)
            n = mutate(&g, text, n);
        struct result want = run(text, n, WHOLE, 0, 0);
        n_requests += strstr(want.text, "complete 1") != NULL;
        n_refused += strstr(want.text, "refused 1") != NULL;
        n_compared += !want.is_timed;
        bool ok = check(text, n, &want, BYTES, 0, seed) && check(text, n, &want, RANDOM, 0, seed) &&
                  check(text, n, &want, KEEP, 0, seed);
        free(want.text);
        cr_assert(ok, "seed %llu", (unsigned long long)seed);
    }
    cr_log_info("%u with a response, %u refused, %u compared", n_requests, n_refused, n_compared);
    cr_expect(n_requests > 1000 && n_refused > 500 && n_compared > 3000);
}

/* ---- failures ---- */

/* Returns whether the failure came. */
static bool run_failing(const char *text, uint64_t fail_at, bool of_sink, size_t piece)
{
    struct rig *r = rig_new();
    size_t n = strlen(text);

    if (of_sink)
        r->sink_fail = (uint32_t)fail_at;
    else
        r->alloc.fail_countdown = fail_at;
    for (size_t at = 0; at < n;) {
        size_t k = piece < n - at ? piece : n - at, left = rig_input(r, text + at, k);
        if (left > 0)
            nj_h1_keep(r->h, (const uint8_t *)text + at + k - left, (uint32_t)left);
        at += k;
        if (r->rv != 0)
            cr_assert(nj_h1_may_read(r->h) && nj_h1_is_finished(r->h) == !nj_h1_n_requests(r->h));
    }
    bool came = of_sink ? r->sink_fail == 0 : r->alloc.fail_countdown == 0;
    cr_expect(came || r->rv == 0);
    if (r->n_req > 0 && nj_h1_n_requests(r->h) > 0) { /* calls after the failure */
        struct rig_request *q = rig_last(r);
        if (rig_flag(q, 'l') && !q->closed)
            (void)rig_answer(r, q);
        rig_output(r);
    }
    rig_free(r);
    return came;
}

Test(h1_splits, failures)
{
    static const size_t pieces[] = {10000, 1, 7};

    for (size_t i = 0; i < NJ_ARRAY_LEN(corpus); i++) {
        for (size_t p = 0; p < NJ_ARRAY_LEN(pieces); p++) {
            uint64_t k = 1;
            while (run_failing(corpus[i], k, false, pieces[p]))
                cr_assert_lt(k++, 2000);
            k = 1;
            while (run_failing(corpus[i], k, true, pieces[p]))
                cr_assert_lt(k++, 2000);
        }
    }
}

Test(h1_splits, a_connection_without_memory)
{
    struct rig *r = rig_new();
    r->alloc.fail_countdown = 1;
    cr_expect_null(nj_h1_open(r->ctx, r, false, false));
    cr_expect_eq(nj_h1_context_n_conns(r->ctx), 1);
    rig_free(r);
}
