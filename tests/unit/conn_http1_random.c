/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random requests over HTTP/1, valid, cut and malformed, in random segments, from peers that read,
 * do not read, leave and return, to files and to handlers that do anything; in cleartext and over
 * TLS. Responses to peers that behave are in order and well-formed. In the end all connections
 * have ended, everything was returned, and nothing is in an account.
 */
#define RIG_PEERS   8
#define RIG_GOT_MAX (4u << 20)
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "conn_http1_rig.h"
#include "support/handlers_rig.h"
#include "support/tls_peer.h"
#include "telem/counters.h"

#define CLIENTS      6u
#define ROUNDS       150u
#define OUT_MAX      32768u
#define LENT         (100u << 10)
#define REQUESTS_MAX 1024u
#define GOT_BY_STEPS (2560u << 10) /* bytes that a client gets between two looks, at most */

static uint64_t seed, run_seed;
static uint8_t lent[LENT];
static uint32_t n_lent, n_released;
static uint64_t n_checked; /* responses */

static uint32_t below(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

/* ---- handlers ---- */

static void release(void *arg)
{
    n_released++;
}

static void do_one_thing(struct nj_request *req, struct nj_response *resp)
{
    static const char *const lengths[] = {"0", "5", "3000", "99999999"};
    static const unsigned statuses[] = {200, 204, 304, 404, 408};
    uint8_t some[2000];

    switch (below(11)) {
    case 0:
        nj_response_status(resp, statuses[below(NJ_ARRAY_LEN(statuses))]);
        break;
    case 1:
        if (below(3) == 0)
            nj_response_header(resp, "content-length", lengths[below(NJ_ARRAY_LEN(lengths))]);
        break;
    case 2:
        nj_response_trailer(resp, "trailer-x", "t");
        break;
    case 3:
        nj_response_write(resp, lent, below(3000));
        break;
    case 4:
        nj_response_try_write(resp, lent, below(LENT));
        break;
    case 5:
        n_lent += nj_response_send(resp, lent, below(LENT), release, NULL) == 0;
        break;
    case 6:
        if (below(4) == 0)
            nj_response_file(resp, below(2) ? "/whole" : "/index.html");
        break;
    case 7:
        nj_response_flush(resp);
        break;
    case 8:
        nj_request_read(req, some, 1 + below(sizeof some));
        break;
    case 9:
        if (below(8) == 0)
            nj_response_reset(resp);
        break;
    case 10:
        if (!nj_must_not_block() && nj_fiber_self())
            nj_sleep(below(50) * NJ_MS);
        break;
    }
}

static void act(struct nj_request *req, struct nj_response *resp, void *arg)
{
    for (uint32_t i = below(5); i > 0; i--)
        do_one_thing(req, resp);
    if (below(3) == 0)
        nj_response_end(resp);
    else
        nj_response_on_timer(resp, (1 + below(50)) * NJ_MS, act, NULL);
}

/* The query is the number of the request. */
static void handle(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view query = nj_request_query(req);
    char x[16];

    snprintf(x, sizeof x, "%.*s", (int)query.n_bytes, query.p);
    nj_response_header(resp, "x", x);
    if (below(3) == 0) {
        nj_response_defer(resp);
        nj_request_on_body(req, act, NULL);
        nj_response_on_writable(resp, act, NULL);
        nj_response_on_timer(resp, (1 + below(50)) * NJ_MS, act, NULL);
    }
    for (uint32_t i = below(6); i > 0; i--)
        do_one_thing(req, resp);
}

static const struct nj_route routes[] = {
    {.path = "/0", .type = NJ_NON_BLOCKING, .handle = handle, .body_max_bytes = 5000},
    {.path = "/1", .type = NJ_BLOCKING, .handle = handle, .body_max_bytes = 100000},
    {.path = "/2", .type = NJ_EITHER, .handle = handle},
    {.path = "/3", .type = NJ_OS_BLOCKING, .handle = handle, .body_max_bytes = 5000},
};

/* ---- clients ---- */

struct client {
    struct rig_peer *p;
    struct tls_peer *tls; /* NULL: cleartext */
    bool is_evil;         /* it may send anything, and leave at any time */
    bool behaves;         /* all that it has sent is valid requests */
    bool has_left;
    uint32_t n_requests, n_out;
    bool is_head[REQUESTS_MAX];
    uint8_t out[OUT_MAX]; /* bytes to be sent as TCP allows */
};

static struct client client[CLIENTS];
static struct rig *r;
static struct hr *h;
static struct tls_rig *t;
static uint16_t next_port;

/* The responses to valid requests, as far as they were kept. */
static void check_responses(const struct client *c)
{
    bool is_kept = c->p->n_got <= RIG_GOT_MAX;
    struct http1_reader in = {c->p->got, is_kept ? c->p->n_got : RIG_GOT_MAX, 0,
                              is_kept && c->p->got_fin};
    struct http1_reply a = {.is_whole = true};
    uint32_t n = 0;

    if (c->tls)
        in = (struct http1_reader){c->tls->got, c->tls->n_got, 0, c->tls->closed};
    while (c->behaves && a.is_whole && http1_next(&in, c->is_head[n], &a)) {
        const char *x = http1_field(&a, "X");
        cr_assert_lt(n, c->n_requests, "seed %lu: a response without a request", run_seed);
        cr_assert(a.status < 200 || !x || strtoul(x, NULL, 10) == n,
                  "seed %lu: %s is not the response to %u", run_seed, a.head, n);
        cr_assert(a.status != 400 && a.status != 501, "seed %lu: %s", run_seed, a.head);
        n += a.status >= 200;
        n_checked++;
    }
}

static void connect_anew(struct client *c)
{
    if (c->p) {
        check_responses(c);
        if (!c->p->got_rst) /* its connection may be alive */
            rig_seg(r, c->p, c->p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
        rig_step(r);
        c->p->used = false;
    }
    if (c->tls)
        tls_peer_free(c->tls);
    *c = (struct client){.behaves = true, .is_evil = below(2)};
    c->p = rig_syn_from(r, RIG_PEER_IP + below(3), next_port++);
    for (uint32_t i = 0; i < 10 && !c->p->got_synack; i++)
        rig_step(r);
    if (t)
        c->tls = tls_peer_new_on(t, c->p);
}

/* Over TLS in records of any size. */
static void say(struct client *c, const void *bytes, uint32_t n)
{
    uint32_t room = OUT_MAX - c->n_out;

    if (c->tls) {
        if (SSL_is_init_finished(c->tls->ssl) && !c->tls->failed && n > 0 && n + 100 < room)
            SSL_write(c->tls->ssl, bytes, (int)n);
        else
            c->behaves = false;
        return;
    }
    c->behaves &= n <= room;
    n = n < room ? n : room;
    memcpy(c->out + c->n_out, bytes, n);
    c->n_out += n;
}

static void send_some(struct client *c)
{
    struct rig_peer *p = c->p;

    if (c->tls && BIO_pending(c->tls->out) > 0 && c->n_out < OUT_MAX)
        c->n_out += (uint32_t)BIO_read(c->tls->out, c->out + c->n_out, (int)(OUT_MAX - c->n_out));
    for (uint32_t i = below(6); i > 0 && c->n_out > 0 && !c->has_left && p->got_synack; i--) {
        uint32_t flying = p->snd_nxt - p->snd_una;
        uint32_t room = flying < p->srv_wnd ? p->srv_wnd - flying : 0;
        uint32_t n = 1 + (below(3) ? below(1400) : below(5));
        n = nj_min_u32(nj_min_u32(n, c->n_out), room);
        if (n == 0 || !rig_send(r, p, c->out, n))
            return;
        c->n_out -= n;
        memmove(c->out, c->out + n, c->n_out);
    }
}

static uint32_t put_body(char *to, bool chunked, uint32_t n_body)
{
    uint32_t n = 0;

    while (n_body > 0) {
        uint32_t n_piece = chunked ? 1 + below(n_body) : n_body;
        if (chunked)
            n += (uint32_t)sprintf(to + n, "%x%s\r\n", n_piece, below(4) ? "" : ";a=\"b\"");
        memset(to + n, 'b', n_piece);
        n += n_piece;
        if (chunked)
            n += (uint32_t)sprintf(to + n, "\r\n");
        n_body -= n_piece;
    }
    if (chunked)
        n += (uint32_t)sprintf(to + n, "0\r\n%s\r\n", below(4) ? "" : "A: b\r\n");
    return n;
}

/* A valid request. Returns its bytes. */
static uint32_t put_request(struct client *c, char *to)
{
    static const char *const paths[] = {"/0",     "/1",    "/2",   "/3",
                                        "/whole", "/none", "/big", "/index.html"};
    const char *path = paths[below(NJ_ARRAY_LEN(paths))];
    static const char *const fields[] = {"Accept: text/html\r\n", "If-None-Match: \"x\"\r\n",
                                         "Connection: keep-alive\r\n", "Upgrade: h2c\r\n",
                                         "TE: trailers\r\n"};
    static const char *const methods[] = {"GET", "GET", "HEAD", "POST", "POST", "DELETE"};
    const char *method = methods[below(NJ_ARRAY_LEN(methods))];
    bool has_body = method[0] == 'P', is_1_0 = below(8) == 0, chunked = !is_1_0 && below(2);
    uint32_t n_body = has_body ? below(below(2) ? 100 : 8000) : 0;

    c->is_head[c->n_requests] = method[0] == 'H';
    uint32_t n = (uint32_t)sprintf(to, "%s%s %s?%u HTTP/1.%u\r\nHost: a\r\n",
                                   below(10) ? "" : "\r\n", method, path, c->n_requests, !is_1_0);
    if (path[1] == 'b')
        n += (uint32_t)sprintf(to + n, "Range: bytes=0-%u\r\n", below(600000));
    for (uint32_t i = below(3); i > 0; i--)
        n += (uint32_t)sprintf(to + n, "%s", fields[below(NJ_ARRAY_LEN(fields))]);
    if (below(20) == 0)
        n += (uint32_t)sprintf(to + n, "Connection: close\r\n");
    if (has_body && below(4) == 0)
        n += (uint32_t)sprintf(to + n, "Expect: 100-continue\r\n");
    if (has_body && !chunked)
        n += (uint32_t)sprintf(to + n, "Content-Length: %u\r\n", n_body);
    else if (has_body)
        n += (uint32_t)sprintf(to + n, "Transfer-Encoding: chunked\r\n");
    n += (uint32_t)sprintf(to + n, "\r\n");
    if (has_body)
        n += put_body(to + n, chunked, n_body);
    c->n_requests++;
    return n;
}

static void ask(struct client *c)
{
    static char text[65536];

    if (c->n_requests == REQUESTS_MAX)
        return;
    uint32_t n = put_request(c, text);
    if (c->is_evil && below(20) == 0) { /* cut */
        n = below(n);
        c->behaves = false;
    } else if (c->is_evil && below(20) == 0) { /* changed */
        text[below(n)] = "\r\n\0:; Ax"[below(8)];
        c->behaves = false;
    } else if (c->is_evil && below(30) == 0) {
        n = (uint32_t)sprintf(text, "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n");
        c->behaves = false;
    }
    for (uint32_t at = 0, n_piece; at < n; at += n_piece) {
        n_piece = below(2) ? n - at : 1 + below(n - at);
        say(c, text + at, n_piece);
    }
}

static void leave(struct client *c)
{
    c->has_left = true;
    c->behaves = false;
    if (c->tls && below(2))
        SSL_shutdown(c->tls->ssl);
    if (below(2))
        rig_fin(r, c->p);
    else
        rig_seg(r, c->p, c->p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
}

static void do_something(struct client *c)
{
    static const uint32_t windows[] = {0, 1, 500, 3000, 65535};

    if (c->has_left || c->p->got_rst || c->p->got_fin || below(200) == 0) {
        if (below(4) == 0)
            connect_anew(c);
        return;
    }
    for (uint32_t i = below(4); i > 0; i--)
        ask(c);
    send_some(c);
    if (below(c->is_evil ? 20 : 100) == 0) {
        c->p->rcv_wnd = windows[below(NJ_ARRAY_LEN(windows))];
        c->p->manual = below(3) == 0;
        rig_ack(r, c->p);
    }
    if (c->is_evil && below(60) == 0)
        leave(c);
}

/* ---- the run ---- */

static void step_some(void)
{
    for (uint32_t i = below(6); i > 0; i--)
        rig_step(r);
    r->now += (below(30) ? below(20) : below(5000)) * NJ_MS;
    rig_step(r);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (t)
            tls_peer_read(client[i].tls);
        send_some(&client[i]);
        if (client[i].p->n_got > RIG_GOT_MAX - GOT_BY_STEPS)
            connect_anew(&client[i]);
    }
}

/* Time passes until every timeout has expired. */
static void outlive(uint64_t of, size_t n_bytes_before)
{
    const struct nj_conns *cs = &r->s->conns;

    r->files_slow = false;
    r->tx_room = UINT32_MAX;
    r->s->conns.session_memory.fail_countdown = 0;
    if (h)
        h->workers_slow = false;
    else
        t->slow = false;
    for (uint32_t i = 0; i < CLIENTS; i++)
        client[i].p->manual = true; /* no one reads or sends any more */
    for (uint32_t i = 0; i < 1600; i++) {
        for (uint32_t k = 0; k < 4; k++)
            rig_step(r);
        r->now += 250 * NJ_MS;
    }
    cr_assert_eq(cs->pool.n_used, 0, "seed %lu: %u connections", of, cs->pool.n_used);
    cr_assert_eq(cs->txns.pool.n_used, 0, "seed %lu", of);
    cr_assert(cs->held_mbufs.n_held == 0 && cs->held_memory.n_held == 0, "seed %lu", of);
    cr_assert_eq(cs->held_output.n_held, 0, "seed %lu", of);
    cr_assert_eq(cs->session_memory.bytes_used, n_bytes_before, "seed %lu: %zu bytes", of,
                 cs->session_memory.bytes_used - n_bytes_before);
}

static void play(uint64_t of)
{
    size_t n_bytes_before = r->s->conns.session_memory.bytes_used;

    memset(client, 0, sizeof client);
    next_port = 1000;
    for (uint32_t i = 0; i < CLIENTS; i++)
        connect_anew(&client[i]);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        r->files_slow = below(3) == 0;
        r->tx_room = below(8) ? UINT32_MAX : below(20);
        if (h)
            h->workers_slow = below(3) == 0;
        else
            t->slow = below(3) == 0;
        if (below(20) == 0)
            r->s->conns.session_memory.fail_countdown = 1 + below(20);
        if (round > ROUNDS / 2 && below(200) == 0)
            nj_conns_drain(&r->s->conns, r->now);
        for (uint32_t k = 0; k < CLIENTS; k++) {
            do_something(&client[below(CLIENTS)]);
            step_some();
        }
    }
    for (uint32_t i = 0; i < CLIENTS; i++)
        check_responses(&client[i]);
    outlive(of, n_bytes_before);
}

static void play_in_clear(uint64_t of)
{
    h = hr_new(routes, NJ_ARRAY_LEN(routes));
    t = NULL;
    r = h->r;
    hr_start(h);
    play(of);
    hr_free(h);
}

static void play_over_tls(uint64_t of)
{
    char why[256];

    h = NULL;
    t = tls_rig_alloc(8192, below(3) ? 8192 : 700);
    tls_rig_permit_http1(t);
    SSL_CTX_set_alpn_protos(t->client, (const uint8_t *)"\x08http/1.1", 9);
    struct nj_routes *set = nj_routes_new(routes, NJ_ARRAY_LEN(routes) - 1, why, sizeof why);
    t->routes = set;
    tls_rig_start(t);
    r = t->r;
    play(of);
    for (uint32_t i = 0; i < CLIENTS; i++)
        tls_peer_free(client[i].tls);
    tls_rig_free(t);
    nj_routes_free(set);
}

/* SEED=n runs one seed, N=n runs n seeds. */
static void run(void (*one)(uint64_t of))
{
    const char *seed_given = getenv("SEED"), *n_given = getenv("N");
    uint64_t first = seed_given ? strtoull(seed_given, NULL, 10) : 1;
    uint64_t n = n_given ? strtoull(n_given, NULL, 10) : seed_given ? 1 : 20;

    for (uint32_t i = 0; i < LENT; i++)
        lent[i] = rig_byte(i);
    n_checked = 0;
    for (uint64_t i = first; i < first + n; i++) {
        printf("seed %lu\n", i);
        fflush(stdout); /* before it may abort */
        run_seed = i;
        seed = i * 0x9e3779b97f4a7c15u + 1;
        n_lent = n_released = 0;
        one(i);
        cr_expect_eq(n_lent, n_released, "seed %lu: %u lent, %u came back", i, n_lent, n_released);
    }
    cr_expect_geq(n_checked, n, "%lu responses were checked", n_checked);
}

Test(conn_http1_random, cleartext)
{
    run(play_in_clear);
}

Test(conn_http1_random, tls)
{
    run(play_over_tls);
}
